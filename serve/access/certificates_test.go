package access

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// issue writes a certificate of that serial number and its key, and returns the certificate.
func issue(t *testing.T, certFile, keyFile string, serial int64) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "rankd"}, DNSNames: []string{"rankd"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return cert
}

// handshake connects through TLS and returns the serial number of the certificate that the server shows.
func handshake(t *testing.T, config *tls.Config, trusted *x509.Certificate) int64 {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(trusted)
	here, there := net.Pipe()
	defer here.Close()
	served := make(chan error, 1)
	go func() {
		server := tls.Server(there, config)
		_, err := io.Copy(io.Discard, server)
		_ = server.Close()
		served <- err
	}()
	client := tls.Client(here, &tls.Config{RootCAs: roots, ServerName: "rankd"})
	require.NoError(t, client.Handshake())
	serial := client.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	require.NoError(t, client.Close())
	require.NoError(t, <-served)
	return serial
}

func TestCertificatesChange(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	first := issue(t, certFile, keyFile, 1)
	c, err := OpenCertificates(certFile, keyFile)
	require.NoError(t, err)
	assert.Equal(t, first.NotAfter, c.Expires())
	config := c.Config()
	assert.Equal(t, int64(1), handshake(t, config, first))
	changed, err := c.Reload()
	require.NoError(t, err)
	assert.False(t, changed)

	second := issue(t, certFile, keyFile, 2)
	assert.Equal(t, int64(1), handshake(t, config, first), "until it is told")
	changed, err = c.Reload()
	require.NoError(t, err)
	assert.True(t, changed)
	assert.Equal(t, int64(2), handshake(t, config, second), "with the same configuration")

	issue(t, certFile, filepath.Join(dir, "other.pem"), 3) // the key of another certificate
	_, err = c.Reload()
	assert.ErrorContains(t, err, certFile+": with the key in "+keyFile)
	assert.Equal(t, int64(2), handshake(t, config, second), "a broken pair changes nothing")
}

func TestAKeyThatEverybodyMayRead(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	issue(t, certFile, keyFile, 1)
	require.NoError(t, os.Chmod(keyFile, 0o644))
	_, err := OpenCertificates(certFile, keyFile)
	assert.EqualError(t, err, keyFile+": everybody may read it: its mode is 0644, and must not have 0004")
}
