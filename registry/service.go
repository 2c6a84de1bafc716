package registry

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/rankd/rankd/internal/errtext"
)

// Service says how requests to an endpoint of kind http are made, besides its host and port. Immutable once built;
// any goroutine.
type Service struct {
	TLS     bool     // https
	Path    string   // without the query: "/v1/score". Empty means "/"
	Query   Secret   // of the URL, without "?": it may hold a secret
	Headers []Header // sent with each request, in the order of the table
	// BearerToken goes into the header Authorization. Registry.ReadSecrets fills it in.
	BearerToken     Secret
	Dialect         Dialect
	Inputs, Outputs []Tensor // of dialect OpenInference
	Rerank          Rerank   // of dialect Reranking
	MaxRequestBytes int      // of the body; 0 for another kind of endpoint
	MaxAnswerBytes  int      // of the body; 0 for another kind of endpoint
}

// Header is one header of the requests to a service. Immutable; any goroutine.
type Header struct {
	Name  string
	Value Secret // Registry.ReadSecrets fills it in
}

// The bounds of the bodies of an http endpoint whose table leaves them out, and the highest bound.
const (
	DefaultMaxBodyBytes = 16 << 20
	maxBodyBytesLimit   = 1 << 30
)

// URL returns where the requests to an endpoint of kind http are posted.
func (e *Endpoint) URL() *url.URL {
	u := &url.URL{Scheme: "http", Host: e.Addr(), Path: "/"}
	if e.Service.TLS {
		u.Scheme = "https"
	}
	if at, err := url.ParseRequestURI(e.Service.Path); err == nil { // of "//a", url.Parse would take a as a host
		u.Path, u.RawPath = at.Path, at.RawPath
	}
	u.RawQuery = e.Service.Query.Reveal()
	return u
}

// Header returns the headers of the requests to an endpoint of kind http, including secrets.
func (e *Endpoint) Header() http.Header {
	h := make(http.Header)
	for _, given := range e.Service.Headers {
		h.Add(given.Name, given.Value.Reveal())
	}
	if !e.Service.BearerToken.IsZero() {
		h.Set("Authorization", "Bearer "+e.Service.BearerToken.Reveal())
	}
	return h
}

// headerNames returns the names of the headers.
func (s *Service) headerNames() (names []string) {
	for _, h := range s.Headers {
		names = append(names, h.Name)
	}
	return names
}

// readSecrets replaces the secrets of s by read ones. The error names the source of the first that cannot be read, or
// that cannot be the value of a header.
func (s *Service) readSecrets() error {
	token, err := s.BearerToken.read("bearer_token")
	if err == nil && !validHeaderValue(token.Reveal()) {
		err = errors.New("bearer_token: " + badHeaderValue)
	}
	s.BearerToken = token
	headers := make([]Header, len(s.Headers))
	for i, h := range s.Headers {
		value, failed := h.Value.read("value")
		if failed == nil && !validHeaderValue(value.Reveal()) {
			failed = errors.New(badHeaderValue)
		}
		if failed != nil && err == nil {
			err = fmt.Errorf("header %s: %w", errtext.Text(h.Name), failed)
		}
		headers[i] = Header{h.Name, value}
	}
	if len(headers) > 0 {
		s.Headers = headers
	}
	return err
}

// badHeaderValue says what is wrong with the value of a header, without quoting it.
const badHeaderValue = "the value has a line end or another control character"

// validHeaderValue reports whether a header can have the value.
func validHeaderValue(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// validHeaderName matches the tokens of RFC 9110.
var validHeaderName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// ownHeaders are set by the client or by net/http.
var ownHeaders = map[string]bool{
	"Content-Type": true, "Content-Length": true, "Accept": true, "Host": true, "Connection": true, "Transfer-Encoding": true,
	"Te": true, "Trailer": true, "Upgrade": true, "Expect": true, "Idempotency-Key": true, "Accept-Encoding": true,
}

// headersMost bounds the headers of an endpoint.
const headersMost = 64

// headerRow is one [[endpoint.header]].
type headerRow struct {
	Name      string `toml:"name"`
	Value     string `toml:"value"`
	ValueFile string `toml:"value_file"`
	ValueEnv  string `toml:"value_env"`
}

// headers reads the headers of the requests to an endpoint of kind http. No problem quotes a secret.
func (l *loader) headers(file, label string, rows []headerRow, e *Endpoint) {
	switch {
	case len(rows) == 0:
		return
	case e.Kind != HTTP:
		l.problem(file, label, "header "+needsHTTP)
		return
	case len(rows) > headersMost:
		l.problem(file, label, "has %d headers, and may have %d", len(rows), headersMost)
		return
	}
	for i, h := range rows {
		at := fmt.Sprintf("header[%d]", i)
		name := textproto.CanonicalMIMEHeaderKey(h.Name)
		var value Secret
		for j, text := range []string{h.Value, h.ValueFile, h.ValueEnv} {
			if text != "" && !value.IsZero() {
				l.problem(file, label, "%s.value%s: the value is given twice", at, secretSources[j])
			}
			if text != "" {
				value = secretFrom(secretSources[j], text)
			}
		}
		switch {
		case !validHeaderName.MatchString(h.Name):
			l.problem(file, label, "%s.name is not the name of a header: letters, digits and -; what it says goes into value, value_file or value_env", at)
		case ownHeaders[name]:
			l.problem(file, label, "%s.name: rankd itself sets %s", at, name)
		case name == "Authorization" && !e.Service.BearerToken.IsZero():
			l.problem(file, label, "%s.name: policy.bearer_token sets Authorization, too", at)
		case value.IsZero():
			l.problem(file, label, "%s needs a value, value_file or value_env", at)
		case !isName(value.File) || !isName(value.Env):
			l.problem(file, label, "%s.value %w", at, errNotName)
		case !validHeaderValue(value.Reveal()):
			l.problem(file, label, "%s.value: %s", at, badHeaderValue)
		default:
			e.Service.Headers = append(e.Service.Headers, Header{name, value})
		}
	}
}

// The errors of parseService quote nothing of the text: a password may be anywhere in it.
var (
	errServiceScheme = errors.New("the scheme must be http:// or https://")
	errServiceURL    = errors.New("the URL is malformed")
	errServiceUser   = errors.New("a user or a password does not belong in the URL; use policy.bearer_token_file or a header")
	errServicePort   = errors.New("the port must be a number from 1 to 65535")
)

// parseService reads a URL such as "https://models.internal:8443/v1/score".
func (e *Endpoint) parseService(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return errServiceURL
	}
	secure, port := u.Scheme == "https", 80
	if secure {
		port = 443
	}
	switch given, err := strconv.Atoi(u.Port()); {
	case u.Scheme != "http" && u.Scheme != "https":
		return errServiceScheme
	case u.User != nil:
		return errServiceUser
	case u.Opaque != "" || u.Fragment != "" || strings.HasSuffix(text, "#") || strings.HasSuffix(u.Host, ":"):
		return errServiceURL
	case !ValidHost(u.Hostname()):
		return errHost
	case u.Port() != "" && (err != nil || given < 1 || given > 65535):
		return errServicePort
	case u.Port() != "":
		port = given
	}
	path, query, _ := strings.Cut(u.RequestURI(), "?")
	e.Host, e.Port = u.Hostname(), port
	e.Service.TLS, e.Service.Path, e.Service.Query = secure, path, NewSecret(query)
	return nil
}
