package registry

import (
	"net/netip"
	"regexp"
	"strings"
)

// hostNameMax is the longest name that the DNS can hold, in bytes.
const hostNameMax = 253

var (
	// validLabel matches one part of a host name. The DNS forbids underscores, but container
	// networks use them.
	validLabel = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?$`)
	// numericLabel matches a part that must not be the last one: the name would be a malformed
	// IPv4 address.
	numericLabel = regexp.MustCompile(`^[0-9]+$`)
)

// validHost reports whether host is an IP address or a name in ASCII whose parts have 1 to 63
// letters, digits, - and _.
func validHost(host string) bool {
	if address, err := netip.ParseAddr(host); err == nil {
		return address.Zone() == "" || validLabel.MatchString(address.Zone())
	}
	name := strings.TrimSuffix(host, ".")
	if len(name) > hostNameMax {
		return false
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if !validLabel.MatchString(label) {
			return false
		}
	}
	return !numericLabel.MatchString(labels[len(labels)-1])
}
