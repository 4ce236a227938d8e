package security

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// buildTLS reads the stores.
func (r *reader) buildTLS() *tls.Config {
	k := &r.keys.Net.TLS
	out := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: k.ServerName}
	if k.MinVersion == "1.3" {
		out.MinVersion = tls.VersionTLS13
	}
	out.RootCAs = r.buildTrust(&k.TrustStore)
	if cert := r.buildIdentity(&k.KeyStore); cert != nil {
		out.Certificates = []tls.Certificate{*cert}
	}
	if !k.VerifyHostname {
		withoutName(out)
	}
	return out
}

// withoutName checks the broker's certificate in all but its name.
func withoutName(c *tls.Config) {
	roots := c.RootCAs
	c.InsecureSkipVerify = true // VerifyConnection checks instead
	c.VerifyConnection = func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 {
			return errors.New("the broker sent no certificate")
		}
		o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
		for _, c := range s.PeerCertificates[1:] {
			o.Intermediates.AddCert(c)
		}
		_, err := s.PeerCertificates[0].Verify(o)
		return err
	}
}

// buildTrust is nil, for the system's authorities, when nothing is given.
func (r *reader) buildTrust(k *trustKeys) *x509.CertPool {
	const section = "net.tls.trustStore."
	var certs []*x509.Certificate
	var err error
	key := section + "location"
	switch {
	case k.Location != "" && k.Certificates != "":
		r.problem(section+"certificates", "both a file and certificates are given; one is possible")
		return nil
	case k.Location != "":
		certs, err = r.readTrust(k)
	case k.Certificates != "":
		key = section + "certificates"
		certs, err = pemCertificates([]byte(k.Certificates))
	default:
		return nil
	}
	if err == nil && len(certs) == 0 {
		err = errors.New("holds no certificate")
	}
	if err != nil {
		r.problem(r.blame(key, section+"password", err), err.Error())
		return nil
	}
	pool := x509.NewCertPool()
	for _, c := range certs {
		pool.AddCert(c)
	}
	return pool
}

// blame names the key that an error of a store is about.
func (r *reader) blame(key, password string, err error) string {
	if errors.Is(err, errStorePassword) && r.has(password) {
		return password
	}
	return key
}

func (r *reader) readTrust(k *trustKeys) ([]*x509.Certificate, error) {
	data, err := readBounded(k.Location)
	if err != nil {
		return nil, errors.New(k.Location + " " + fileError(err))
	}
	kind, err := storeKind(data, k.Type)
	if err != nil {
		return nil, err
	}
	switch kind {
	case kindPEM:
		return pemCertificates(data)
	case kindJKS:
		return jksCertificates(data, string(k.Password))
	}
	return pkcs12Certificates(data, string(k.Password))
}

// buildIdentity is this client's certificate; nil when none is given.
func (r *reader) buildIdentity(k *keyStoreKeys) *tls.Certificate {
	const section = "net.tls.keyStore."
	var cert *tls.Certificate
	var err error
	key := section + "location"
	switch {
	case k.Location != "" && (k.CertificateChain != "" || k.Key != ""):
		r.problem(key, "both a file and a certificate with its key are given; one is possible")
		return nil
	case k.Location != "":
		cert, err = r.readIdentity(k)
	case k.CertificateChain != "" && k.Key != "":
		key = section + "key"
		cert, err = pemIdentity([]byte(k.CertificateChain), []byte(k.Key), string(k.KeyPassword))
	case k.CertificateChain != "":
		r.problem(section+"certificateChain", "has no key: "+r.nameOf(section+"key")+" is missing")
		return nil
	case k.Key != "":
		r.problem(section+"key", "has no certificate: "+r.nameOf(section+"certificateChain")+" is missing")
		return nil
	default:
		return nil
	}
	if err != nil {
		blamed := r.blame(key, section+"password", err)
		if errors.Is(err, errKeyPassword) && r.has(section+"keyPassword") {
			blamed = section + "keyPassword"
		}
		r.problem(blamed, err.Error())
		return nil
	}
	return cert
}

func (r *reader) readIdentity(k *keyStoreKeys) (*tls.Certificate, error) {
	data, err := readBounded(k.Location)
	if err != nil {
		return nil, errors.New(k.Location + " " + fileError(err))
	}
	kind, err := storeKind(data, k.Type)
	if err != nil {
		return nil, err
	}
	switch kind {
	case kindPEM:
		return pemIdentity(data, data, string(k.KeyPassword))
	case kindJKS:
		return jksIdentity(data, string(k.Password), string(k.KeyPassword))
	}
	return pkcs12Identity(data, string(k.Password))
}
