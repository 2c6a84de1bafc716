package access

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/rankd/rankd/internal/errtext"
)

// Hosts are the host names that HTTP requests to a listener may have. They keep web pages out. The owner of a page
// can point its name at this machine (DNS rebinding) and then read the listener's answers, but the browser sends that
// name. Nil allows every name. Immutable; any goroutine.
type Hosts struct{ names patterns }

// NewHosts returns the hosts that patterns of names allow, as path.Match reads them: "*.example.com". "localhost" and addresses
// are always allowed. The error says what is wrong with the patterns.
func NewHosts(names []string) (*Hosts, error) {
	h := &Hosts{}
	for _, name := range names {
		h.names = append(h.names, strings.ToLower(name))
	}
	return h, h.names.check("hosts")
}

// Check says why a request with these headers must be refused. Each may be empty: no browser leaves out Host.
func (h *Hosts) Check(host, origin string) error {
	switch {
	case h == nil:
	case !h.allows(host):
		return refusedName("Host", host)
	case origin != "":
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || !h.allows(u.Host) { // "null" is the origin of a page without a name
			return refusedName("Origin", origin)
		}
	}
	return nil
}

func refusedName(header, value string) error {
	return errors.New("the header " + header + " has the name " + errtext.Quote(value) + ", which --allow_hosts does not list")
}

// allows reports whether a request may have this host name. A port may follow it.
func (h *Hosts) allows(name string) bool {
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if name == "" || name == "localhost" || h.names.match(name) {
		return true
	}
	_, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil
}
