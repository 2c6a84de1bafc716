package registry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
)

// TLS says how a server is reached through TLS, 1.2 or later. The server's certificate is always verified. Immutable once built; any goroutine.
type TLS struct {
	CA         string // file of the authorities that may have signed the server's certificate, in PEM; empty: those of the system
	Cert, Key  string // files of the certificate that the client shows, in PEM; empty: it has none
	ServerName string // the name in the server's certificate; empty: the host
}

// maxPEMBytes bounds a file of certificates.
const maxPEMBytes = 1 << 20

// Config returns what makes the configuration of a connection to addr, "host:port". It reads the files anew for each
// connection, so a renewed certificate counts from the next connection on. A nil TLS has none.
func (t *TLS) Config() func(addr string) (*tls.Config, error) {
	if t == nil {
		return nil
	}
	return t.config
}

// Check returns what is wrong with the files.
func (t *TLS) Check() error {
	if t == nil {
		return nil
	}
	_, err := t.config("")
	return err
}

// config returns the configuration for a server at addr, "host:port".
func (t *TLS) config(addr string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if c.ServerName == "" {
		c.ServerName, _, _ = net.SplitHostPort(addr)
	}
	if t.CA != "" {
		text, err := fileio.ReadRegular(t.CA, maxPEMBytes)
		if err != nil {
			return nil, fmt.Errorf("tls_ca %s: %w", errtext.Name(t.CA), err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("tls_ca %s: no certificate in PEM", errtext.Name(t.CA))
		}
	}
	if t.Cert != "" {
		cert, err := fileio.ReadRegular(t.Cert, maxPEMBytes)
		if err != nil {
			return nil, fmt.Errorf("tls_cert %s: %w", errtext.Name(t.Cert), err)
		}
		key, err := fileio.ReadRegular(t.Key, maxPEMBytes)
		if err != nil {
			return nil, fmt.Errorf("tls_key %s: %w", errtext.Name(t.Key), err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("tls_cert %s: %w", errtext.Name(t.Cert), err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// errKeyPair: only one of both files is given.
var errKeyPair = errors.New("tls_cert and tls_key need each other")

// check returns what is wrong with the fields themselves.
func (t *TLS) check() error {
	if t != nil && (t.Cert == "") != (t.Key == "") {
		return errKeyPair
	}
	return nil
}
