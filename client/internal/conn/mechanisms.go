package conn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/xdg-go/scram"
)

// secret is text that cannot be printed by accident.
type secret string

func (secret) String() string       { return "***" }
func (secret) GoString() string     { return "***" }
func (secret) LogValue() slog.Value { return slog.StringValue("***") }

// Redact takes the secret out of a text.
func (s secret) Redact(text string) string {
	if s == "" {
		return text
	}
	return strings.ReplaceAll(text, string(s), "***")
}

var errCredentials = errors.New("user and password must be given and must not contain a NUL character")

func checkCredentials(user, password string) error {
	if user == "" || password == "" || strings.Contains(user+password, "\x00") {
		return errCredentials
	}
	return nil
}

// PLAIN is the mechanism of RFC 4616: the password itself crosses the wire, so it is meant for
// TLS connections.
func PLAIN(user, password string) (Authenticator, error) {
	if err := checkCredentials(user, password); err != nil {
		return nil, fmt.Errorf("SASL PLAIN: %w", err)
	}
	return plain{user: user, password: secret(password)}, nil
}

type plain struct {
	user     string
	password secret
}

func (plain) Mechanism() string  { return "PLAIN" }
func (p plain) String() string   { return "PLAIN as " + p.user }
func (p plain) GoString() string { return p.String() }

func (p plain) Start(context.Context) (Exchange, []byte, error) {
	return oneMessage{p.password}, []byte("\x00" + p.user + "\x00" + string(p.password)), nil
}

// oneMessage is an exchange that is over with the broker's first answer.
type oneMessage struct{ secret }

func (oneMessage) Step([]byte) ([]byte, bool, error) { return nil, true, nil }

// SCRAM256 is SCRAM-SHA-256 (RFC 5802, 7677): the password does not cross the wire, and the
// broker proves that it knows it.
func SCRAM256(user, password string) (Authenticator, error) {
	return newScram("SCRAM-SHA-256", scram.SHA256, user, password)
}

// SCRAM512 is SCRAM-SHA-512.
func SCRAM512(user, password string) (Authenticator, error) {
	return newScram("SCRAM-SHA-512", scram.SHA512, user, password)
}

func newScram(name string, hash scram.HashGeneratorFcn, user, password string) (Authenticator, error) {
	if err := checkCredentials(user, password); err != nil {
		return nil, fmt.Errorf("SASL %s: %w", name, err)
	}
	client, err := hash.NewClient(user, password, "")
	if err != nil {
		return nil, fmt.Errorf("SASL %s: user or password holds characters that SASLprep (RFC 4013) forbids", name)
	}
	return &scramAuth{name: name, user: user, password: secret(password), client: client}, nil
}

type scramAuth struct {
	name     string
	user     string
	password secret
	client   *scram.Client // remembers the derived keys, so that reconnecting is cheap
}

func (s *scramAuth) Mechanism() string { return s.name }
func (s *scramAuth) String() string    { return s.name + " as " + s.user }
func (s *scramAuth) GoString() string  { return s.String() }

func (s *scramAuth) Start(context.Context) (Exchange, []byte, error) {
	talk := s.client.NewConversation()
	first, err := talk.Step("")
	return &scramExchange{secret: s.password, talk: talk}, []byte(first), err
}

type scramExchange struct {
	secret
	talk  *scram.ClientConversation
	steps int
}

// maxIterations bounds the work that a broker can make us do; Kafka allows 4096 … 16384.
const maxIterations = 1_000_000

func (e *scramExchange) Step(challenge []byte) ([]byte, bool, error) {
	if e.steps++; e.steps == 1 {
		if err := checkIterations(string(challenge)); err != nil {
			return nil, false, err
		}
	}
	answer, err := e.talk.Step(string(challenge))
	if err != nil {
		return nil, false, fmt.Errorf("the broker's part of the exchange is not right: %w", err)
	}
	if e.talk.Done() {
		if !e.talk.Valid() {
			return nil, false, errors.New("the broker could not prove that it knows the password")
		}
		return nil, true, nil
	}
	return []byte(answer), false, nil
}

// checkIterations looks at the iteration count of a server-first-message (RFC 5802, 5.1).
func checkIterations(first string) error {
	for field := range strings.SplitSeq(first, ",") {
		if count, ok := strings.CutPrefix(field, "i="); ok {
			if n, err := strconv.Atoi(count); err != nil || n > maxIterations {
				return fmt.Errorf("the broker asks for more than %d iterations", maxIterations)
			}
		}
	}
	return nil
}

// OAUTHBEARER is RFC 7628 as Kafka has it (KIP-255). token is called for each authentication and
// must obey its context; it returns the token and extensions, which may be nil.
func OAUTHBEARER(token func(ctx context.Context) (token string, extensions map[string]string, err error)) (Authenticator, error) {
	if token == nil {
		return nil, errors.New("SASL OAUTHBEARER: a function that gets the token must be given")
	}
	return oauth{token}, nil
}

type oauth struct {
	token func(ctx context.Context) (string, map[string]string, error)
}

func (oauth) Mechanism() string { return "OAUTHBEARER" }
func (oauth) String() string    { return "OAUTHBEARER" }
func (oauth) GoString() string  { return "OAUTHBEARER" }

var errToken = errors.New("the token or an extension is empty or holds a control character")

func (o oauth) Start(ctx context.Context) (Exchange, []byte, error) {
	token, extensions, err := o.token(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("no token: %w", err)
	}
	if token == "" || !printable(token) {
		return nil, nil, errToken
	}
	first := "n,,\x01auth=Bearer " + token + "\x01"
	for _, name := range slices.Sorted(maps.Keys(extensions)) {
		if value := extensions[name]; name == "" || name == "auth" || !printable(name) || !printable(value) {
			return nil, nil, errToken
		} else {
			first += name + "=" + value + "\x01"
		}
	}
	return &bearer{secret: secret(token)}, []byte(first + "\x01"), nil
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// bearer: a broker that refuses a token says why in a challenge, which the client answers with
// one control character to get the failure proper (RFC 7628, 3.2.3).
type bearer struct {
	secret
	refused bool
}

func (b *bearer) Step(challenge []byte) ([]byte, bool, error) {
	if b.refused {
		return nil, false, errors.New("the broker refused the token")
	}
	if len(challenge) == 0 {
		return nil, true, nil
	}
	b.refused = true
	return []byte{1}, false, nil
}
