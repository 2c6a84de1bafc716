package access

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Certificates are the certificate of a server and its key, in files that may change. Any goroutine.
type Certificates struct {
	certFile, keyFile string
	current           atomic.Pointer[tls.Certificate]

	reloading sync.Mutex
	cert, key []byte // of the files, as last read; guarded by reloading
}

// OpenCertificates reads a certificate, with the chain that leads to it, and its key, both PEM. It refuses a
// key that everybody may read. The error names a file.
func OpenCertificates(certFile, keyFile string) (*Certificates, error) {
	c := &Certificates{certFile: certFile, keyFile: keyFile}
	if _, err := c.Reload(); err != nil {
		return nil, err
	}
	return c, nil
}

// Reload reads the files again and reports whether they have changed. After an error the certificate stays as
// it was. Connections that are open keep theirs.
func (c *Certificates) Reload() (changed bool, err error) {
	c.reloading.Lock()
	defer c.reloading.Unlock()
	cert, err := readFile(c.certFile, othersWrite)
	if err != nil {
		return false, err
	}
	key, err := readFile(c.keyFile, othersWrite|othersRead)
	if err != nil {
		return false, err
	}
	if c.current.Load() != nil && bytes.Equal(cert, c.cert) && bytes.Equal(key, c.key) {
		return false, nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return false, fileError(c.certFile, fmt.Errorf("with the key in %s: %w", c.keyFile, err))
	}
	c.cert, c.key = cert, key
	c.current.Store(&pair)
	return true, nil
}

// Expires returns when the certificate ends.
func (c *Certificates) Expires() time.Time { return c.current.Load().Leaf.NotAfter }

// Config returns a configuration of servers that always shows the newest certificate. The caller may add
// protocols to it.
func (c *Certificates) Config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current.Load(), nil },
	}
}
