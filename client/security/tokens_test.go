package security

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tokenOf loads a file and asks for a token.
func tokenOf(t *testing.T, name, text string) (string, error) {
	s, err := loadText(t, name, text)
	require.NoError(t, err)
	require.Equal(t, "OAUTHBEARER", s.Mechanism())
	return s.sasl.Token(t.Context())
}

func oauthYAML(keys string) string { return "net: {sasl: {mechanism: OAUTHBEARER, " + keys + "}}" }

const oauthJava = "security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\nsasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "

func TestTokensFromFilesAreReadAnew(t *testing.T) {
	file := written(t, "token", " first\n")
	for name, text := range map[string]string{
		"a.yaml":       oauthYAML("tokenFile: " + file),
		"c.properties": oauthJava + ";\nsasl.login.callback.handler.class=" + handlerOIDC + "\nsasl.oauthbearer.token.endpoint.url=file://" + file,
	} {
		require.NoError(t, os.WriteFile(file, []byte(" first\n"), 0o600))
		s, err := loadText(t, name, text)
		require.NoError(t, err)
		token, err := s.sasl.Token(t.Context())
		require.NoError(t, err)
		require.Equal(t, "first", token)
		require.NoError(t, os.WriteFile(file, []byte("second"), 0o600))
		token, err = s.sasl.Token(t.Context())
		require.NoError(t, err)
		require.Equal(t, "second", token)
	}
}

func TestTokensThatAreNone(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		return "tokenFile: " + filepath.Join(dir, name)
	}
	for _, row := range []struct{ name, keys, want string }{
		{"a file that is not there", "tokenFile: /no/such", "the file /no/such cannot be read: no such file or directory"},
		{"an empty file", file("empty", "\n"), "gave no token"},
		{"two lines", file("two", canary+"\n"+canary+"\n"), "gave something that is no token"},
		{"not ASCII", file("umlaut", canary+"ä"), "gave something that is no token"},
		{"too long", file("long", strings.Repeat("a", maxToken+1)), "gave more than 65536 bytes"},
		{"a program that fails", "tokenCommand: [sh, -c, 'echo " + canary + "; echo " + canary + " >&2; exit 7']", "the program sh failed (exit status 7); run it by hand to see why"},
		{"a program that says nothing", "tokenCommand: ['true']", "the program true gave no token"},
		{"a program that says too much", "tokenCommand: [head, -c, 300000, /dev/zero]", "gave more than 65536 bytes"},
	} {
		t.Run(row.name, func(t *testing.T) {
			token, err := tokenOf(t, "a.yaml", oauthYAML(row.keys))
			require.ErrorContains(t, err, row.want)
			require.Empty(t, token)
			require.NotContains(t, err.Error(), "c4n4ry")
		})
	}
}

func TestTokensOfAProgram(t *testing.T) {
	count := filepath.Join(t.TempDir(), "count")
	s, err := loadText(t, "a.yaml", oauthYAML("tokenCommand: [sh, -c, 'echo >>"+count+"; wc -l <"+count+"'], extensions: {logicalCluster: lkc-1}"))
	require.NoError(t, err)
	for _, want := range []string{"1", "2"} {
		token, err := s.sasl.Token(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, token, "run at each authentication")
	}
	require.Equal(t, map[string]string{"logicalCluster": "lkc-1"}, s.sasl.Extensions)
}

// A program that hangs, with a child that keeps its output open, is given up with the context.
func TestAProgramThatHangs(t *testing.T) {
	s, err := loadText(t, "a.yaml", oauthYAML("tokenCommand: [sh, -c, 'sleep 60 & sleep 60']"))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err = s.sasl.Token(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "the program sh took too long")
	require.Less(t, time.Since(began), 20*time.Second)
}

// claimsOf takes an unsecured token apart.
func claimsOf(t *testing.T, token string) map[string]any {
	parts := strings.Split(token, ".")
	require.Len(t, parts, 3)
	require.Empty(t, parts[2], "no signature")
	header, err := base64.RawURLEncoding.DecodeString(parts[0])
	require.NoError(t, err)
	require.JSONEq(t, `{"alg":"none"}`, string(header))
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	require.NoError(t, err)
	var claims map[string]any
	require.NoError(t, json.Unmarshal(body, &claims))
	return claims
}

func TestUnsecuredTokens(t *testing.T) {
	for _, row := range []struct {
		name, file, text string
		claims           map[string]any
		life             float64
		extensions       map[string]string
	}{
		{"YAML", "a.yaml", oauthYAML("unsecured: {subject: alice, scope: [a, b], lifetime: 5m}"), map[string]any{"sub": "alice", "scope": []any{"a", "b"}}, 300, nil},
		{"Java", "c.properties", oauthJava + `unsecuredLoginStringClaim_sub="alice";`, map[string]any{"sub": "alice"}, 3600, nil},
		{"Java, all of it", "c.properties", oauthJava + `unsecuredLoginPrincipalClaimName=user unsecuredLoginStringClaim_user="a \\"b\\"" unsecuredLoginNumberClaim_n=1.5 unsecuredLoginListClaim_scope="|x|y" unsecuredLoginLifetimeSeconds=60 unsecuredLoginScopeClaimName=scope unsecuredLoginExtension_trace="t-1";`,
			map[string]any{"user": `a "b"`, "n": 1.5, "scope": []any{"x", "y"}}, 60, map[string]string{"trace": "t-1"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, err := loadText(t, row.file, row.text)
			require.NoError(t, err)
			require.Equal(t, row.extensions, s.sasl.Extensions)
			before := float64(time.Now().UnixMilli()) / 1000
			token, err := s.sasl.Token(t.Context())
			require.NoError(t, err)
			claims := claimsOf(t, token)
			iat, exp := claims["iat"].(float64), claims["exp"].(float64)
			require.GreaterOrEqual(t, iat, before)
			require.InDelta(t, row.life, exp-iat, 0.01)
			delete(claims, "iat")
			delete(claims, "exp")
			require.Equal(t, row.claims, claims)
		})
	}
}

// endpoint plays a token endpoint that knows one client.
func endpoint(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) string {
	s := httptest.NewServer(http.HandlerFunc(answer))
	t.Cleanup(s.Close)
	return s.URL
}

func TestClientCredentials(t *testing.T) {
	var asked atomic.Int64
	url := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(1)
		user, password, _ := r.BasicAuth()
		_ = r.ParseForm()
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":"%d|%s|%s|%s|%s","expires_in":100}`, n, user, strings.ReplaceAll(password, " ", "_"), r.Form.Get("grant_type"), r.Form.Get("scope"))
	})
	s, err := loadText(t, "a.yaml", oauthYAML("oidc: {tokenEndpoint: '"+url+"', clientID: 'id:ü', clientSecret: 's c/r+t', scope: kafka}"))
	require.NoError(t, err)
	_, err = s.sasl.Token(t.Context())
	require.NoError(t, err)
	token, err := s.sasl.Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "1|id%3A%C3%BC|s+c%2Fr%2Bt|client_credentials|kafka", token, "encoded as RFC 6749 has it, and kept")

	token, err = tokenOf(t, "c.properties", oauthJava+`clientId="a" clientSecret="b/c" scope="x" extension_trace="t";`+"\nsasl.login.callback.handler.class="+handlerOIDCOld+"\nsasl.oauthbearer.token.endpoint.url="+url)
	require.NoError(t, err)
	require.Equal(t, "2|a|b/c|client_credentials|x", token, "not encoded, as Java does by default")
	token, err = tokenOf(t, "c.properties", oauthJava+";\nsasl.oauthbearer.client.credentials.client.id=a\nsasl.oauthbearer.client.credentials.client.secret=b/c\nsasl.oauthbearer.scope=y\nsasl.oauthbearer.header.urlencode=true\nsasl.oauthbearer.token.endpoint.url="+url)
	require.NoError(t, err)
	require.Equal(t, "3|a|b%2Fc|client_credentials|y", token)
}

// One token serves many connections until four fifths of its life; whoever comes meanwhile waits for
// the one request, or for its own context.
func TestATokenIsKeptForAWhile(t *testing.T) {
	var asked atomic.Int64
	gate := make(chan struct{}) // closed by the test, read by the endpoint
	url := endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
		<-gate
		_, _ = fmt.Fprintf(w, `{"access_token":"t%d","expires_in":100}`, asked.Add(1))
	})
	now := time.Now()
	c := &clientCredentials{
		keys: oidcKeys{TokenEndpoint: url, ClientID: "a", ClientSecret: canary},
		http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
		busy: make(chan struct{}, 1), now: func() time.Time { return now },
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			token, err := c.token(context.Background())
			if err != nil || token != "t1" {
				t.Errorf("%q, %v", token, err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.token(ctx)
	require.ErrorIs(t, err, context.Canceled)
	close(gate)
	wg.Wait()
	now = now.Add(79 * time.Second)
	token, err := c.token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "t1", token)
	now = now.Add(2 * time.Second)
	token, err = c.token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "t2", token)
	require.EqualValues(t, 2, asked.Load())
}

func TestTokenEndpointsThatRefuse(t *testing.T) {
	reply := func(status int, body string) string {
		return endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		})
	}
	var elsewhere atomic.Int64
	target := endpoint(t, func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) })
	for _, row := range []struct{ name, url, want string }{
		{"wrong secret", reply(401, `{"error":"invalid_client","error_description":"secret `+canary+` is wrong"}`), "answered 401 invalid_client; check client id, secret and scope"},
		{"an error that repeats the secret", reply(400, `{"error":"`+canary+`"}`), "answered 400; check"},
		{"an error page", reply(503, "<html>"+canary+"</html>"), "answered 503; check"},
		{"not JSON", reply(200, "token="+canary), "did not answer in JSON"},
		{"no token", reply(200, `{}`), "gave no token"},
		{"a token with a line break", reply(200, `{"access_token":"a\nb"}`), "gave something that is no token"},
		{"too long an answer", reply(200, `{"access_token":"`+strings.Repeat("a", 3*maxToken)+`"}`), "did not answer in JSON"},
		{"elsewhere", endpoint(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, target, http.StatusTemporaryRedirect)
		}), "answered 307"},
		{"nobody there", "http://127.0.0.1:1/?secret=" + canary, "connection refused"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := tokenOf(t, "a.yaml", oauthYAML("oidc: {tokenEndpoint: '"+row.url+"', clientID: a, clientSecret: "+canary+"}"))
			require.ErrorContains(t, err, "the token endpoint at 127.0.0.1:")
			require.ErrorContains(t, err, row.want)
			require.NotContains(t, err.Error(), "c4n4ry")
			require.NotContains(t, err.Error(), "\n")
		})
	}
	require.Zero(t, elsewhere.Load(), "the secret is not sent to where it was not meant to go")
}

func TestATokenEndpointThatHangs(t *testing.T) {
	gate := make(chan struct{}) // closed at the end, read by the endpoint
	url := endpoint(t, func(http.ResponseWriter, *http.Request) { <-gate })
	defer close(gate)
	s, err := loadText(t, "a.yaml", oauthYAML("oidc: {tokenEndpoint: '"+url+"', clientID: a, clientSecret: b}"))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = s.sasl.Token(ctx)
	require.True(t, errors.Is(err, context.DeadlineExceeded), "%v", err)
}
