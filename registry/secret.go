package registry

import (
	"fmt"
	"os"
	"strings"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
)

// Secret is a password, a token or the value of a header, or the file or the environment variable that
// holds it: below, the password. The zero value means that there is none. Every printed form hides the
// password, also inside another value: %v and %+v, JSON, and a structured log. Immutable; any goroutine.
type Secret struct {
	File string // the path of the file that holds it
	Env  string // the name of the environment variable that holds it
	// text is a pointer because in an unexported field fmt cannot call String, and then prints only an address.
	text *string
}

// secretMaxBytes bounds the file of a secret.
const secretMaxBytes = 4 << 10

// NewSecret returns the secret with that text. The empty text is none.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{text: &text}
}

// IsZero reports whether s names no secret.
func (s Secret) IsZero() bool { return s == Secret{} }

// Reveal returns the password that NewSecret got or Read has read. It is empty if there is none, or if it was not
// read yet.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Read returns the secret with its password. It reads the file or the environment, and drops one line
// end at the end of a file. The error names the source and never quotes its content. An
// empty password is an error.
func (s Secret) Read() (Secret, error) { return s.read("password") }

// read is Read for a secret with another name than password. Its fields in the tables are name_file and name_env.
func (s Secret) read(name string) (Secret, error) {
	switch {
	case s.text != nil:
		return s, nil
	case s.File != "":
		content, err := fileio.ReadRegular(s.File, secretMaxBytes)
		if err != nil {
			return s, fmt.Errorf("%s_file %s: %w", name, errtext.Name(s.File), err)
		}
		text := strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
		if text == "" {
			return s, fmt.Errorf("%s_file %s: the %s is empty", name, errtext.Name(s.File), strings.ReplaceAll(name, "_", " "))
		}
		s.text = &text
	case s.Env != "":
		text, ok := os.LookupEnv(s.Env)
		if !ok {
			return s, fmt.Errorf("%s_env %s: the environment has no such variable", name, errtext.Name(s.Env))
		}
		if text == "" {
			return s, fmt.Errorf("%s_env %s: the %s is empty", name, errtext.Name(s.Env), strings.ReplaceAll(name, "_", " "))
		}
		s.text = &text
	}
	return s, nil
}

// Login returns a function that reads user and password again for each connection, if the password is in a file. So a
// replaced file takes effect by itself. Otherwise Login returns nil.
func (p *Policy) Login() func() (username, password string, err error) {
	return login(p.Username, p.Password, "password")
}

// Login is that of a Policy, for sentinels.
func (s *Sentinel) Login() func() (username, password string, err error) {
	return login(s.Username, s.Password, "sentinel_password")
}

// login is Login for a password of a name.
func login(username string, password Secret, name string) func() (string, string, error) {
	if password.File == "" {
		return nil
	}
	source := Secret{File: password.File}
	return func() (string, string, error) {
		password, err := source.read(name)
		return username, password.Reveal(), err
	}
}

// String says where the password comes from, and hides it.
func (s Secret) String() string {
	switch {
	case s.File != "":
		return "from file " + errtext.Name(s.File)
	case s.Env != "":
		return "from the environment variable " + errtext.Name(s.Env)
	case s.text != nil:
		return "hidden"
	default:
		return "none"
	}
}

// GoString implements fmt.GoStringer. It hides the password.
func (s Secret) GoString() string { return "registry.Secret(" + s.String() + ")" }

// MarshalText implements encoding.TextMarshaler. It hides the password.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
