package security

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// buildOIDC checks the endpoint and what goes with it.
func (r *reader) buildOIDC(k *oidcKeys) source {
	const section = "net.sasl.oidc."
	u, err := url.Parse(k.TokenEndpoint)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		r.problem(section+"tokenEndpoint", "is not a URL such as https://login.example.com/oauth2/token")
		return nil
	case u.User != nil:
		r.problem(section+"tokenEndpoint", "holds a user or a password; give them as "+r.nameOf(section+"clientID")+" and "+r.nameOf(section+"clientSecret"))
		return nil
	case u.Scheme == "http":
		r.warn("the token endpoint is not https: client secret and tokens cross the network as they are")
	}
	if k.ClientID == "" {
		r.problem(section+"clientID", r.missing(section+"clientID", "it for a token endpoint"))
	}
	if k.ClientSecret == "" {
		r.problem(section+"clientSecret", r.missing(section+"clientSecret", "it for a token endpoint"))
	}
	c := &clientCredentials{keys: *k, busy: make(chan struct{}, 1), now: time.Now}
	c.http = &http.Client{
		// Tokens are asked for once in a long while, and secrets go where they were meant to.
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c.token
}

// clientCredentials gets tokens by OAuth 2.0's client credentials (RFC 6749, 4.4). One token serves
// every connection until four fifths of its life are over, so that a thousand connections are not
// a thousand logins.
type clientCredentials struct {
	keys oidcKeys
	http *http.Client
	now  func() time.Time

	// busy is the right to what follows, held by whoever has sent to it and given back by a
	// receive; nobody closes it.
	busy  chan struct{}
	have  string
	until time.Time
}

func (c *clientCredentials) token(ctx context.Context) (string, error) {
	select {
	case c.busy <- struct{}{}:
		defer func() { <-c.busy }()
	case <-ctx.Done():
		return "", fmt.Errorf("the token endpoint is slow: %w", ctx.Err())
	}
	if c.have != "" && c.now().Before(c.until) {
		return c.have, nil
	}
	token, life, err := c.fetch(ctx)
	if err != nil {
		return "", err
	}
	c.have, c.until = token, c.now().Add(life/5*4)
	return token, nil
}

// answer is what a token endpoint says, in success and in failure (RFC 6749, 5.1 and 5.2).
type tokenAnswer struct {
	AccessToken string      `json:"access_token"`
	ExpiresIn   json.Number `json:"expires_in"`
	Error       string      `json:"error"`
}

// fetch asks for one token. life is 0 where the endpoint does not tell: such a token is used once.
func (c *clientCredentials) fetch(ctx context.Context) (token string, life time.Duration, err error) {
	form := url.Values{"grant_type": {"client_credentials"}}
	if c.keys.Scope != "" {
		form.Set("scope", c.keys.Scope)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.keys.TokenEndpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return "", 0, errors.New("the token endpoint's URL cannot be used")
	}
	id, secret := c.keys.ClientID, string(c.keys.ClientSecret)
	if !c.keys.raw {
		id, secret = url.QueryEscape(id), url.QueryEscape(secret)
	}
	req.SetBasicAuth(id, secret)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return "", 0, fmt.Errorf("the token endpoint at %s: %w", req.URL.Host, withoutURL(err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 2*maxToken))
	if err != nil {
		return "", 0, fmt.Errorf("the token endpoint at %s: %w", req.URL.Host, withoutURL(err))
	}
	return c.read(req.URL.Host, resp.StatusCode, body)
}

// withoutURL takes the URL off an error, since its query may hold what is nobody's business.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// read takes the token out of an answer. Of a refusal only the code is shown, if it is one.
func (c *clientCredentials) read(host string, status int, body []byte) (string, time.Duration, error) {
	var a tokenAnswer
	err := json.Unmarshal(body, &a)
	if status != http.StatusOK {
		text := fmt.Sprintf("the token endpoint at %s answered %d", host, status)
		if err == nil && errorCode(a.Error) && !strings.Contains(a.Error, string(c.keys.ClientSecret)) {
			text += " " + a.Error
		}
		return "", 0, errors.New(text + "; check client id, secret and scope")
	}
	if err != nil {
		return "", 0, fmt.Errorf("the token endpoint at %s did not answer in JSON", host)
	}
	token, err := checkToken([]byte(a.AccessToken), "the token endpoint at "+host)
	if err != nil {
		return "", 0, err
	}
	seconds, err := a.ExpiresIn.Float64()
	if err != nil || !(seconds > 0) {
		return token, 0, nil
	}
	return token, time.Duration(min(seconds, 365*24*3600) * float64(time.Second)), nil
}

// errorCode says whether s looks like an error code of RFC 6749.
func errorCode(s string) bool {
	return s != "" && len(s) <= 40 && strings.IndexFunc(s, func(c rune) bool { return (c < 'a' || c > 'z') && c != '_' }) < 0
}
