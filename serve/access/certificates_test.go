package access

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/servetest"
)

// handshake connects through TLS and returns the serial number of the certificate that the server shows.
func handshake(t *testing.T, config *tls.Config, trusted servetest.Certificate) int64 {
	t.Helper()
	here, there := net.Pipe()
	defer here.Close()
	served := make(chan error, 1)
	go func() {
		server := tls.Server(there, config)
		_, err := io.Copy(io.Discard, server)
		_ = server.Close()
		served <- err
	}()
	client := tls.Client(here, &tls.Config{RootCAs: trusted.Roots, ServerName: "rankd"})
	require.NoError(t, client.Handshake())
	serial := client.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	require.NoError(t, client.Close())
	require.NoError(t, <-served)
	return serial
}

func TestCertificatesChange(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	first := servetest.WriteCertificate(t, certFile, keyFile, 1)
	c, err := OpenCertificates(certFile, keyFile)
	require.NoError(t, err)
	assert.Equal(t, first.Leaf.NotAfter, c.Expires())
	config := c.Config()
	assert.Equal(t, int64(1), handshake(t, config, first))
	changed, err := c.Reload()
	require.NoError(t, err)
	assert.False(t, changed)

	second := servetest.WriteCertificate(t, certFile, keyFile, 2)
	assert.Equal(t, int64(1), handshake(t, config, first), "until it is told")
	changed, err = c.Reload()
	require.NoError(t, err)
	assert.True(t, changed)
	assert.Equal(t, int64(2), handshake(t, config, second), "with the same configuration")

	servetest.WriteCertificate(t, certFile, filepath.Join(dir, "other.pem"), 3) // the key of another certificate
	_, err = c.Reload()
	assert.ErrorContains(t, err, certFile+": with the key in "+keyFile)
	assert.Equal(t, int64(2), handshake(t, config, second), "a broken pair changes nothing")
}

func TestAKeyThatEverybodyMayRead(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	servetest.WriteCertificate(t, certFile, keyFile, 1)
	require.NoError(t, os.Chmod(keyFile, 0o644))
	_, err := OpenCertificates(certFile, keyFile)
	assert.EqualError(t, err, keyFile+": everybody may read it: its mode is 0644, and must not have 0004")
}
