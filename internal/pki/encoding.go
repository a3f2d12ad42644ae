// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

const (
	certificateBlock = "CERTIFICATE"
	keyBlock         = "PRIVATE KEY"
)

// encodeCertificates writes certificates one behind the other.
func encodeCertificates(certificates ...*x509.Certificate) []byte {
	var out []byte
	for _, c := range certificates {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: c.Raw})...)
	}
	return out
}

func encodeKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}), nil
}

// ParseAuthority reads what PEM wrote: the CA's certificate, those above it up to the
// root's, and the CA's key.
func ParseAuthority(files Issued) (*Authority, error) {
	chain, err := decodeCertificates(files.Cert)
	if err != nil {
		return nil, fmt.Errorf("the CA's certificate: %w", err)
	}
	if err := checkChain(chain); err != nil {
		return nil, err
	}
	block, rest := pem.Decode(files.Key)
	if block == nil || block.Type != keyBlock || len(bytes.TrimSpace(rest)) > 0 {
		return nil, fmt.Errorf("the CA's key: want one PEM block %s and nothing else", keyBlock)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the CA's key: %w", err)
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("the CA's key cannot sign: %T", parsed)
	}
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(chain[0].PublicKey) {
		return nil, errors.New("the CA's key is not that of its certificate")
	}
	return &Authority{certificate: chain[0], above: chain[1:], key: key}, nil
}

// checkChain says whether each certificate is a CA's that the next one has signed, and
// the last one a root's.
func checkChain(chain []*x509.Certificate) error {
	for n, c := range chain {
		if !c.IsCA {
			return fmt.Errorf("the certificate of %q is not a CA's", c.Subject.CommonName)
		}
		by := chain[min(n+1, len(chain)-1)]
		if err := c.CheckSignatureFrom(by); err != nil {
			return fmt.Errorf("the CA %q is not signed by %q, which should follow it: %w", c.Subject.CommonName, by.Subject.CommonName, err)
		}
		if n < len(chain)-1 && bytes.Equal(c.RawSubject, c.RawIssuer) {
			return fmt.Errorf("the CA %q has signed itself, and more follows it", c.Subject.CommonName)
		}
	}
	return nil
}

// decodeCertificates takes the certificates of a PEM file, which holds nothing else.
func decodeCertificates(data []byte) ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	for {
		block, rest := pem.Decode(data)
		if block == nil {
			break
		}
		if block.Type != certificateBlock {
			return nil, fmt.Errorf("it holds a %.40q besides certificates", block.Type)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		out, data = append(out, certificate), rest
	}
	if len(out) == 0 || len(bytes.TrimSpace(data)) > 0 {
		return nil, errors.New("it is not a list of PEM certificates")
	}
	return out, nil
}

// parseChain takes one's own certificate and those between it and the CA. What else the file
// holds, and what cannot be read behind the first, is passed over, as crypto/tls does.
func parseChain(data []byte) (leaf *x509.Certificate, between *x509.CertPool, err error) {
	between = x509.NewCertPool()
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != certificateBlock {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		switch {
		case leaf == nil && err != nil:
			return nil, nil, err
		case leaf == nil:
			leaf = certificate
		case err == nil:
			between.AddCert(certificate)
		}
	}
	if leaf == nil {
		return nil, nil, errors.New("it holds no PEM certificate")
	}
	return leaf, between, nil
}
