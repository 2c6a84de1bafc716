// Package servetest has what the tests of servers share: certificates, tokens, sockets that take little. It
// imports nothing of the servers, so that their own tests can use it.
package servetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
)

// Certificate signs itself, for 127.0.0.1 and the name "rankd". Immutable.
type Certificate struct {
	tls.Certificate
	Roots *x509.CertPool // trusts it
}

// Issue returns a certificate of that serial number which ends then.
func Issue(t testing.TB, serial int64, end time.Time) Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"rankd"},
		NotBefore: end.Add(-2 * time.Hour), NotAfter: end, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return Certificate{tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, roots}
}

// WriteCertificate replaces the files of a certificate and its key by those of a new one, which is good for an hour.
func WriteCertificate(t testing.TB, certFile, keyFile string, serial int64) Certificate {
	t.Helper()
	c := Issue(t, serial, time.Now().Add(time.Hour))
	c.Write(t, certFile, keyFile)
	return c
}

// Write replaces the files of a certificate and its key.
func (c Certificate) Write(t testing.TB, certFile, keyFile string) {
	t.Helper()
	private, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	require.NoError(t, err)
	Replace(t, keyFile, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	Replace(t, certFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Leaf.Raw})))
}

// Replace gives a file another text at once, as a deployment does. Only its owner may read it.
func Replace(t testing.TB, file, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file+".new", []byte(text), 0o600))
	require.NoError(t, os.Rename(file+".new", file))
}

// AllPlans is the line of a token's entry that grants all plans.
const AllPlans = `plans = ["*"]`

// Digest returns the SHA-256 of a token, as a file of tokens has it.
func Digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Token returns the entry of a token in a file of tokens, with some further lines.
func Token(name, token string, lines ...string) string {
	return fmt.Sprintf("[[token]]\nname = %q\nsha256 = %q\n%s\n", name, Digest(token), strings.Join(lines, "\n"))
}

// Plans returns the line of a token's entry that grants the plans of a pattern.
func Plans(pattern string) string { return fmt.Sprintf("plans = [%q]", pattern) }

// SmallSockets accepts connections whose sockets take little. Any goroutine.
type SmallSockets struct{ net.Listener }

// Accept implements net.Listener.
func (l SmallSockets) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err == nil {
		err = nc.(*net.TCPConn).SetWriteBuffer(64 << 10)
	}
	return nc, err
}

// LiveHeap returns the bytes that live on.
func LiveHeap() int64 {
	runtime.GC()
	runtime.GC() // once more for what pools held on to
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Log keeps what is written to it. Any goroutine.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns all that was written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Stall holds up whoever writes, until resume is called.
func (l *Log) Stall() (resume func()) {
	l.mu.Lock()
	return l.mu.Unlock
}

// Artifact returns a plan of these nodes. The one named "out" is its output.
func Artifact(name, nodes string) *fstest.MapFile {
	return &fstest.MapFile{Data: fmt.Appendf(nil, `{"schema_version": 1, "plan_name": %q, "nodes": [%s], "outputs": ["out"],
		"expr_table": {"e": {"op": "param_ref", "param_id": 4}}}`, name, nodes)}
}
