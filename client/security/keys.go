package security

import (
	"log/slog"
	"time"
)

// secret is text that is not printed by accident.
type secret string

func (secret) String() string       { return "***" }
func (secret) GoString() string     { return "***" }
func (secret) LogValue() slog.Value { return slog.StringValue("***") }

// keys are the keys of the YAML file; their tags are its documentation.
type keys struct {
	Brokers []string `key:"brokers" doc:"Bootstrap addresses, host:port, when --brokers and KBENCH_BROKERS name none."`
	Net     struct {
		TLS  tlsKeys  `key:"tls"`
		SASL saslKeys `key:"sasl"`
	} `key:"net"`
}

type tlsKeys struct {
	Enabled        bool         `key:"enabled" doc:"Use TLS. Any other key of net.tls says so too."`
	VerifyHostname bool         `key:"verifyHostname" doc:"Check that the broker's certificate holds the name it is reached by."`
	ServerName     string       `key:"serverName" doc:"The name to ask for and to check, instead of the host of each broker's address."`
	MinVersion     string       `key:"minVersion" enum:"1.2,1.3" doc:"Oldest version of TLS to speak."`
	TrustStore     trustKeys    `key:"trustStore"`
	KeyStore       keyStoreKeys `key:"keyStore"`
}

type trustKeys struct {
	Location     string `key:"location" doc:"File with the certificates of trusted authorities: PEM, PKCS12 or JKS. Without any, the system's are trusted."`
	Type         string `key:"type" enum:"PEM,PKCS12,JKS" doc:"What the file is; without it the file's content tells."`
	Password     secret `key:"password" secret:"true" doc:"Password of a PKCS12 or JKS file."`
	Certificates string `key:"certificates" doc:"The certificates themselves, PEM, instead of a file."`
}

type keyStoreKeys struct {
	Location         string `key:"location" doc:"File with this client's certificate and key, where brokers ask for one: PEM, PKCS12 or JKS."`
	Type             string `key:"type" enum:"PEM,PKCS12,JKS" doc:"What the file is; without it the file's content tells."`
	Password         secret `key:"password" secret:"true" doc:"Password of a PKCS12 or JKS file."`
	KeyPassword      secret `key:"keyPassword" secret:"true" doc:"Password of the key itself, where it has one of its own."`
	CertificateChain string `key:"certificateChain" doc:"The certificate and those between it and the authority, PEM, instead of a file."`
	Key              secret `key:"key" secret:"true" doc:"The key of certificateChain, PEM."`
}

type saslKeys struct {
	Mechanism    string            `key:"mechanism" enum:"PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER" doc:"How to authenticate; without it not at all."`
	User         string            `key:"user" doc:"User of PLAIN and SCRAM."`
	Password     secret            `key:"password" secret:"true" doc:"Password of PLAIN and SCRAM."`
	Token        secret            `key:"token" secret:"true" doc:"OAUTHBEARER: a token as it is."`
	TokenFile    string            `key:"tokenFile" doc:"OAUTHBEARER: a file that holds the token; it is read at each authentication."`
	TokenCommand []string          `key:"tokenCommand" doc:"OAUTHBEARER: a program and its arguments that prints the token; it is run at each authentication, without a shell."`
	Extensions   map[string]string `key:"extensions" doc:"OAUTHBEARER: SASL extensions sent with the token (KIP-342)."`
	Unsecured    unsecuredKeys     `key:"unsecured"`
	OIDC         oidcKeys          `key:"oidc"`
}

type unsecuredKeys struct {
	Subject  string        `key:"subject" doc:"OAUTHBEARER: make an unsigned token for this user, for brokers that are set up to test with."`
	Scope    []string      `key:"scope" doc:"Scopes of that token."`
	Lifetime time.Duration `key:"lifetime" doc:"How long that token is valid."`

	claims map[string]any // Java: claims besides those
}

type oidcKeys struct {
	TokenEndpoint string `key:"tokenEndpoint" doc:"OAUTHBEARER: URL that gives tokens for client credentials (OAuth 2.0, RFC 6749 section 4.4)."`
	ClientID      string `key:"clientID" doc:"This client at the token endpoint."`
	ClientSecret  secret `key:"clientSecret" secret:"true" doc:"Its secret."`
	Scope         string `key:"scope" doc:"Scopes to ask for, separated by spaces."`

	raw bool // Java: id and secret are not encoded as RFC 6749 has it
}

// defaults are the keys without a file.
func defaults() keys {
	var k keys
	k.Net.TLS.VerifyHostname = true
	k.Net.TLS.MinVersion = "1.2"
	k.Net.SASL.Unsecured.Lifetime = time.Hour
	return k
}
