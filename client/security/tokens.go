package security

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"strings"
	"time"
)

// source gets a token; it is called at each authentication, from several goroutines.
type source = func(ctx context.Context) (string, error)

// maxToken bounds a token from anywhere; brokers take some tens of kB at most.
const maxToken = 64 << 10

func staticToken(t secret) source {
	return func(context.Context) (string, error) { return string(t), nil }
}

// tokenFile reads a file that something else keeps fresh.
func tokenFile(path string) source {
	return func(context.Context) (string, error) {
		data, err := readBounded(path)
		if err != nil {
			return "", errors.New("the file " + path + " " + fileError(err))
		}
		return checkToken(data, "the file "+path)
	}
}

// checkToken takes white space off both ends. What is wrong with a token is not shown.
func checkToken(data []byte, from string) (string, error) {
	token := strings.TrimSpace(string(data))
	switch {
	case token == "":
		return "", errors.New(from + " gave no token")
	case len(token) > maxToken:
		return "", fmt.Errorf("%s gave more than %d bytes", from, maxToken)
	case !visible(token) || strings.Contains(token, " "):
		return "", errors.New(from + " gave something that is no token: white space, a line break or letters beyond ASCII")
	}
	return token, nil
}

// buildCommand checks that the program is there.
func (r *reader) buildCommand(argv []string) source {
	if len(argv) == 0 || argv[0] == "" {
		r.problem("net.sasl.tokenCommand", "names no program: [program, argument, …]")
		return nil
	}
	if _, err := exec.LookPath(argv[0]); err != nil {
		r.problem("net.sasl.tokenCommand", "the program "+argv[0]+" cannot be run: it is not there, or not executable")
		return nil
	}
	return tokenCommand(argv)
}

// tokenCommand runs a program that prints a token. What it says on standard error is dropped, since
// it may hold secrets. A program that outlives ctx is killed, and not waited for longer than a
// second more, whatever it has started.
func tokenCommand(argv []string) source {
	from := "the program " + argv[0]
	return func(ctx context.Context) (string, error) {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		out := &bounded{most: maxToken + 1}
		cmd.Stdout, cmd.WaitDelay = out, time.Second
		err := cmd.Run()
		var exit *exec.ExitError
		switch {
		case ctx.Err() != nil:
			return "", fmt.Errorf("%s took too long: %w", from, ctx.Err())
		case errors.As(err, &exit):
			return "", fmt.Errorf("%s failed (%v); run it by hand to see why", from, exit.ProcessState)
		case err != nil:
			return "", fmt.Errorf("%s could not be run to its end: %w", from, err)
		}
		return checkToken(out.Bytes(), from)
	}
}

// bounded keeps the first bytes written and drops the rest.
type bounded struct {
	bytes.Buffer
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), max(0, b.most-b.Len()))])
	return len(p), nil
}

// unsecuredToken makes unsigned tokens (RFC 7515, appendix A.5), valid from now on.
func unsecuredToken(k unsecuredKeys) source {
	return func(context.Context) (string, error) { return unsecuredJWS(k, time.Now()) }
}

func unsecuredJWS(k unsecuredKeys, now time.Time) (string, error) {
	claims := map[string]any{"sub": k.Subject}
	if len(k.Scope) > 0 {
		claims["scope"] = k.Scope
	}
	if k.claims != nil {
		claims = maps.Clone(k.claims)
	}
	claims["iat"] = float64(now.UnixMilli()) / 1000
	claims["exp"] = float64(now.Add(k.Lifetime).UnixMilli()) / 1000
	body, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("the claims of the token: %w", err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode(body) + ".", nil
}
