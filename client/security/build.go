package security

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kbench/kbench/client"
	"github.com/kbench/kbench/client/settings"
)

// build makes of the keys what the client takes.
func (r *reader) build() *Settings {
	out := &Settings{Brokers: slices.Clone(r.keys.Brokers)}
	if r.usesTLS() {
		out.tls = r.buildTLS()
	}
	out.sasl = r.buildSASL()
	if out.sasl.Mechanism == "PLAIN" && out.tls == nil {
		r.warn("SASL PLAIN without TLS: the password crosses the network as it is")
	}
	out.Warnings, out.Others, out.Ignored = r.warnings, r.others, r.ignored
	out.given = r.file != "" || out.tls != nil || out.sasl.Mechanism != ""
	return out
}

// usesTLS: any key of net.tls says so, unless net.tls.enabled says no. A password in the
// environment says nothing, since it may be meant for other runs.
func (r *reader) usesTLS() bool {
	if r.has("net.tls.enabled") {
		return r.keys.Net.TLS.Enabled
	}
	for key := range r.given {
		if strings.HasPrefix(key, "net.tls.") && (r.given[key].file == r.file || !isSecret(key)) {
			return true
		}
	}
	return false
}

// secrets are the keys whose values are.
var secrets = func() []string {
	prototype := defaults()
	var out []string
	for _, f := range settings.Fields(&prototype) {
		if f.Secret {
			out = append(out, f.Key)
		}
	}
	return out
}()

func isSecret(key string) bool { return slices.Contains(secrets, key) }

// buildSASL checks that what the mechanism needs is there.
func (r *reader) buildSASL() client.SASLConfig {
	k := &r.keys.Net.SASL
	switch k.Mechanism {
	case "":
		if !r.has("net.sasl.mechanism") && r.hasWithin("net.sasl", true) {
			r.problem("net.sasl.mechanism", "is missing: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER")
		}
		return client.SASLConfig{}
	case "OAUTHBEARER":
		return r.buildToken()
	}
	if k.User == "" {
		r.problem("net.sasl.user", r.missing("net.sasl.user", "a user"))
	}
	if k.Password == "" {
		r.problem("net.sasl.password", r.missing("net.sasl.password", "a password"))
	}
	return client.SASLConfig{Mechanism: k.Mechanism, User: k.User, Password: string(k.Password)}
}

// missing says what a mechanism needs and where it can be given.
func (r *reader) missing(key, what string) string {
	text := fmt.Sprintf("%s needs %s", r.keys.Net.SASL.Mechanism, what)
	for _, v := range Variables() {
		if v.Key == key {
			return text + ", here or as " + v.Name
		}
	}
	return text
}

// sourcesOfTokens are the keys that say where a token comes from.
var sourcesOfTokens = []string{
	"net.sasl.token", "net.sasl.tokenFile", "net.sasl.tokenCommand", "net.sasl.unsecured.subject", "net.sasl.oidc.tokenEndpoint",
}

// buildToken finds the one source of tokens.
func (r *reader) buildToken() client.SASLConfig {
	k := &r.keys.Net.SASL
	out := client.SASLConfig{Mechanism: k.Mechanism, Extensions: k.Extensions}
	var from []string
	for _, key := range sourcesOfTokens {
		if r.has(key) {
			from = append(from, key)
		}
	}
	switch {
	case len(from) == 0:
		r.problem("net.sasl.mechanism", "OAUTHBEARER needs a source of tokens: "+r.namesOf(sourcesOfTokens))
		return out
	case len(from) > 1:
		r.problem(from[1], "one source of tokens is possible, and several are given: "+r.namesOf(from))
		return out
	}
	switch from[0] {
	case "net.sasl.token":
		out.Token = staticToken(k.Token)
	case "net.sasl.tokenFile":
		out.Token = tokenFile(k.TokenFile)
	case "net.sasl.tokenCommand":
		out.Token = r.buildCommand(k.TokenCommand)
	case "net.sasl.unsecured.subject":
		out.Token = unsecuredToken(k.Unsecured)
	default:
		out.Token = r.buildOIDC(&k.OIDC)
	}
	for name, value := range k.Extensions {
		if !extensionName(name) || !visible(value) {
			r.problem("net.sasl.extensions", "an extension has a name of letters alone, not auth, and a value of printable ASCII (RFC 7628)")
		}
	}
	return out
}

// namesOf lists keys as the file at hand calls them.
func (r *reader) namesOf(keys []string) string {
	var names []string
	for _, key := range keys {
		if name := r.nameOf(key); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

func extensionName(s string) bool {
	return s != "" && s != "auth" && strings.IndexFunc(s, func(c rune) bool { return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') }) < 0
}

func visible(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool { return c < ' ' || c > '~' }) < 0
}
