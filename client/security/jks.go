package security

import (
	"crypto/sha1"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf16"
)

// JKS, Java's own format of stores before PKCS12: a magic number, a version, entries, and a SHA-1
// over the password, a fixed text and all of that. What Java writes today is version 2; all
// lengths are big-endian. Reading it here keeps lengths bound by the file before anything is
// allocated, and takes trust stores without a password as Java does.

// jksStore is what we need of one.
type jksStore struct {
	trusted [][]byte
	keys    []jksKey
}

type jksKey struct {
	encrypted []byte
	chain     [][]byte
}

const (
	jksKeyEntry   = 1
	jksTrustEntry = 2
	jksHeader     = 12 // magic, version, number of entries
)

var errJKS = errors.New("cannot be read: it is a damaged JKS store")

// jksRead takes a store apart. Without a password its integrity is not checked.
func jksRead(data []byte, password string) (*jksStore, error) {
	if len(data) < jksHeader+sha1.Size {
		return nil, errJKS
	}
	body, sum := data[:len(data)-sha1.Size], data[len(data)-sha1.Size:]
	r := &jksReader{rest: body[4:]}
	version, entries := r.uint32(), r.uint32()
	if version != 1 && version != 2 {
		return nil, fmt.Errorf("is a JKS store of version %d, which is not known", version)
	}
	out := &jksStore{}
	for i := uint32(0); i < entries && r.err == nil; i++ {
		r.entry(version, out)
	}
	if r.err != nil || len(r.rest) > 0 {
		return nil, errJKS
	}
	if password != "" {
		h := sha1.New()
		h.Write(javaPassword(password))
		h.Write([]byte("Mighty Aphrodite"))
		h.Write(body)
		if subtle.ConstantTimeCompare(h.Sum(nil), sum) != 1 {
			return nil, errStorePassword
		}
	}
	return out, nil
}

// javaPassword is a password as the digests take it: two bytes a character.
func javaPassword(password string) []byte {
	var out []byte
	for _, u := range utf16.Encode([]rune(password)) {
		out = binary.BigEndian.AppendUint16(out, u)
	}
	return out
}

// jksReader takes pieces off the front; the first that is not there is the error of all that
// follow.
type jksReader struct {
	rest []byte
	err  error
}

func (r *jksReader) bytes(n uint32) []byte {
	if r.err != nil || uint64(n) > uint64(len(r.rest)) {
		r.err = errJKS
		return nil
	}
	out := r.rest[:n:n]
	r.rest = r.rest[n:]
	return out
}

func (r *jksReader) uint32() uint32 {
	if b := r.bytes(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// text passes a string of Java's: a length of two bytes before it.
func (r *jksReader) text() {
	if b := r.bytes(2); b != nil {
		r.bytes(uint32(binary.BigEndian.Uint16(b)))
	}
}

func (r *jksReader) certificate(version uint32) []byte {
	if version == 2 {
		r.text() // "X.509"
	}
	return r.bytes(r.uint32())
}

// entry: a tag, the alias, the time of its making, then the entry.
func (r *jksReader) entry(version uint32, into *jksStore) {
	tag := r.uint32()
	r.text()
	r.bytes(8)
	switch tag {
	case jksTrustEntry:
		into.trusted = append(into.trusted, r.certificate(version))
	case jksKeyEntry:
		key := jksKey{encrypted: r.bytes(r.uint32())}
		for n := r.uint32(); n > 0 && r.err == nil; n-- {
			key.chain = append(key.chain, r.certificate(version))
		}
		into.keys = append(into.keys, key)
	default:
		r.err = errJKS
	}
}

// jksCertificates are the trusted ones, and those of keys, which Java trusts as well.
func jksCertificates(data []byte, password string) ([]*x509.Certificate, error) {
	store, err := jksRead(data, password)
	if err != nil {
		return nil, err
	}
	all := store.trusted
	for _, k := range store.keys {
		all = append(all, k.chain[:min(1, len(k.chain))]...)
	}
	return parseAll(all)
}

func parseAll(ders [][]byte) ([]*x509.Certificate, error) {
	out := make([]*x509.Certificate, 0, len(ders))
	for i, der := range ders {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("certificate %d cannot be read: %w", i+1, err)
		}
		out = append(out, c)
	}
	return out, nil
}

// jksIdentity is the one key with its certificates. A key without a password of its own has the
// store's.
func jksIdentity(data []byte, password, keyPassword string) (*tls.Certificate, error) {
	store, err := jksRead(data, password)
	if err != nil {
		return nil, err
	}
	if len(store.keys) != 1 {
		return nil, fmt.Errorf("holds %d private keys; one is needed", len(store.keys))
	}
	if keyPassword == "" {
		keyPassword = password
	}
	der, err := jksDecrypt(store.keys[0].encrypted, keyPassword)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, errKeyPassword
	}
	certs, err := parseAll(store.keys[0].chain)
	if err != nil {
		return nil, err
	}
	return identity(key, certs)
}

// jksProtection is the only way in which JKS encrypts keys.
var jksProtection = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 42, 2, 17, 1, 1}

// jksDecrypt: salt, the key XORed with a chain of SHA-1s of the password and the one before, and
// at the end SHA-1 of password and key.
func jksDecrypt(encrypted []byte, password string) ([]byte, error) {
	var info struct {
		Algorithm pkix.AlgorithmIdentifier
		Data      []byte
	}
	if rest, err := asn1.Unmarshal(encrypted, &info); err != nil || len(rest) > 0 ||
		!info.Algorithm.Algorithm.Equal(jksProtection) || len(info.Data) < 2*sha1.Size {
		return nil, errKeyPassword
	}
	secret := javaPassword(password)
	salt, data, check := info.Data[:sha1.Size], info.Data[sha1.Size:len(info.Data)-sha1.Size], info.Data[len(info.Data)-sha1.Size:]
	out := make([]byte, len(data))
	for i, link := 0, salt; i < len(data); i += sha1.Size {
		sum := sha1.Sum(append(secret[:len(secret):len(secret)], link...))
		link = sum[:]
		subtle.XORBytes(out[i:], data[i:min(i+sha1.Size, len(data))], link)
	}
	sum := sha1.Sum(append(secret[:len(secret):len(secret)], out...))
	if subtle.ConstantTimeCompare(sum[:], check) != 1 {
		return nil, errKeyPassword
	}
	return out, nil
}
