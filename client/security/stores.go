package security

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/youmark/pkcs8"
	pkcs12 "software.sslmate.com/src/go-pkcs12"
)

// Kinds of stores.
const (
	kindPEM    = "PEM"
	kindPKCS12 = "PKCS12"
	kindJKS    = "JKS"
)

var (
	errStorePassword = errors.New("the password is wrong or missing, or the file is damaged")
	errDamaged       = errors.New("cannot be read: it is damaged")
	errKeyPassword   = errors.New("the password of the key is wrong or missing, or the key is damaged")
)

// storeKind goes by the content, as Java does among PKCS12 and JKS: files called .jks are often the
// former. A type that was given must not be PEM where the file is not, or the other way round.
func storeKind(data []byte, given string) (string, error) {
	kind := ""
	switch {
	case bytes.HasPrefix(data, []byte{0xfe, 0xed, 0xfe, 0xed}):
		kind = kindJKS
	case bytes.HasPrefix(data, []byte{0xce, 0xce, 0xce, 0xce}):
		return "", errors.New("is a JCEKS store, which cannot be read; make it a PKCS12 one: keytool -importkeystore -deststoretype PKCS12")
	case len(data) > 1 && data[0] == 0x30 && (data[1]&0x80 != 0):
		kind = kindPKCS12
	case bytes.Contains(data, []byte("-----BEGIN ")):
		kind = kindPEM
	default:
		return "", errors.New("is neither PEM, PKCS12 nor JKS")
	}
	if given != "" && (given == kindPEM) != (kind == kindPEM) {
		return "", fmt.Errorf("is %s, not %s", kind, given)
	}
	return kind, nil
}

// pemCertificates are all certificates among PEM blocks; text around them is passed over.
func pemCertificates(data []byte) (out []*x509.Certificate, err error) {
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" && block.Type != "TRUSTED CERTIFICATE" && block.Type != "X509 CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d cannot be read: %w", len(out)+1, err)
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, errors.New("holds no certificate in PEM (-----BEGIN CERTIFICATE-----)")
	}
	return out, nil
}

// pemIdentity takes the certificates of one text and the key of another, or the same.
func pemIdentity(chain, key []byte, password string) (*tls.Certificate, error) {
	certs, err := pemCertificates(chain)
	if err != nil {
		return nil, err
	}
	private, err := pemKey(key, password)
	if err != nil {
		return nil, err
	}
	return identity(private, certs)
}

// pemKey is the first private key: PKCS #8, with or without a password, or the older forms
// without one.
func pemKey(data []byte, password string) (any, error) {
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return nil, errors.New("holds no private key in PEM (-----BEGIN PRIVATE KEY-----)")
		}
		if block.Headers["DEK-Info"] != "" {
			return nil, errors.New("the key is encrypted in an old form; convert it: openssl pkcs8 -topk8")
		}
		var key any
		var err error
		switch block.Type {
		case "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case "RSA PRIVATE KEY":
			key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		case "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		case "ENCRYPTED PRIVATE KEY":
			return encryptedKey(block.Bytes, password)
		default:
			continue
		}
		if err != nil {
			return nil, errors.New("the private key cannot be read; PKCS #8 is needed: openssl pkcs8 -topk8")
		}
		return key, nil
	}
}

// encryptedKey decrypts PKCS #8. The library's words say nothing that users need.
func encryptedKey(der []byte, password string) (key any, err error) {
	defer func() {
		if recover() != nil {
			key, err = nil, errKeyPassword
		}
	}()
	if password == "" {
		return nil, errKeyPassword
	}
	if key, err = pkcs8.ParsePKCS8PrivateKey(der, []byte(password)); err != nil {
		return nil, errKeyPassword
	}
	return key, nil
}

// identity puts key and certificates together, the key's own certificate first.
func identity(private any, certs []*x509.Certificate) (*tls.Certificate, error) {
	signer, ok := private.(crypto.Signer)
	if !ok {
		return nil, errors.New("the private key is of a kind that TLS cannot use")
	}
	own, ok := signer.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok {
		return nil, errors.New("the private key is of a kind that TLS cannot use")
	}
	out := &tls.Certificate{PrivateKey: private}
	var rest [][]byte
	for _, c := range certs {
		if out.Leaf == nil && own.Equal(c.PublicKey) {
			out.Leaf = c
			continue
		}
		rest = append(rest, c.Raw)
	}
	if out.Leaf == nil {
		return nil, errors.New("the private key belongs to none of the certificates")
	}
	out.Certificate = append([][]byte{out.Leaf.Raw}, rest...)
	return out, nil
}

// pkcs12Certificates are those of a trust store, or those of a store with a key, which Java
// trusts as well.
func pkcs12Certificates(data []byte, password string) (certs []*x509.Certificate, err error) {
	defer func() {
		if recover() != nil {
			err = errDamaged // bytes of a file must never panic, whatever a decoder does
		}
	}()
	certs, err = pkcs12.DecodeTrustStore(data, password)
	if err == nil {
		return certs, nil
	}
	_, leaf, chain, second := pkcs12.DecodeChain(data, password)
	if second == nil {
		return append(chain, leaf), nil
	}
	return nil, pkcs12Error(err)
}

func pkcs12Identity(data []byte, password string) (out *tls.Certificate, err error) {
	defer func() {
		if recover() != nil {
			err = errDamaged // bytes of a file must never panic, whatever a decoder does
		}
	}()
	key, leaf, chain, err := pkcs12.DecodeChain(data, password)
	if err != nil {
		return nil, pkcs12Error(err)
	}
	return identity(key, append([]*x509.Certificate{leaf}, chain...))
}

func pkcs12Error(err error) error {
	if errors.Is(err, pkcs12.ErrIncorrectPassword) || errors.Is(err, pkcs12.ErrDecryption) {
		return errStorePassword
	}
	return fmt.Errorf("cannot be read: %w", err)
}
