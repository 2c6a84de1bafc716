package access

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/pelletier/go-toml/v2"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/internal/request"
)

// The bounds of a file of tokens, and of an error about it.
const (
	fileMaxBytes  = 1 << 20
	tokensMax     = 4096
	problemsShown = 10
)

// The bits of a file's mode that readFile may refuse.
const (
	othersWrite = fs.FileMode(0o022) // by the group or by all
	othersRead  = fs.FileMode(0o004) // by all
)

// tokenFile is a file of tokens as it is written.
type tokenFile struct {
	Token []tokenEntry `toml:"token"`
}

type tokenEntry struct {
	Name        string   `toml:"name"`
	SHA256      string   `toml:"sha256"`
	Plans       []string `toml:"plans"`
	Overrides   []string `toml:"overrides"`
	Allow       []string `toml:"allow"`
	MaxInflight int      `toml:"max_inflight"`
}

// parse returns the callers in the text of a file of tokens. The error has a line for each problem, and quotes only
// valid names, because a token may be in the wrong place.
func parse(text []byte) ([]*Caller, error) {
	var file tokenFile
	decoder := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return nil, withoutText(err)
	}
	if len(file.Token) == 0 { // perhaps its writer has just begun
		return nil, errors.New("no [[token]]")
	}
	if len(file.Token) > tokensMax {
		return nil, fmt.Errorf("%d tokens are too many; a file has at most %d", len(file.Token), tokensMax)
	}
	var problems []error
	callers := make([]*Caller, 0, len(file.Token))
	names, digests := make(map[string]bool), make(map[uint64]bool)
	for i := range file.Token {
		c, err := file.Token[i].caller()
		switch {
		case err != nil:
		case names[c.name]:
			err = errors.New("another token has this name")
		case digests[key(&c.digest)]:
			err = errors.New("another entry has this token")
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", file.Token[i].label(i), err))
			continue
		}
		names[c.name], digests[key(&c.digest)] = true, true
		callers = append(callers, c)
	}
	if len(problems) > problemsShown {
		more := fmt.Errorf("and %d more problems", len(problems)-problemsShown)
		problems = append(problems[:problemsShown], more)
	}
	return callers, errors.Join(problems...)
}

// withoutText returns an error of the decoder without its quotes from the file.
func withoutText(err error) error {
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) {
		line, _ := unknown.Errors[0].Position()
		return fmt.Errorf("line %d: unknown field; a [[token]] has name, sha256, plans, overrides, allow and max_inflight", line)
	}
	var malformed *toml.DecodeError
	if errors.As(err, &malformed) {
		line, _ := malformed.Position()
		return fmt.Errorf("line %d: malformed TOML, or a value of the wrong type", line)
	}
	return errors.New("malformed TOML, or a value of the wrong type")
}

// label names the entry by its position, and by its name if that is valid.
func (e *tokenEntry) label(i int) string {
	if nameForm.MatchString(e.Name) {
		return fmt.Sprintf("token %d (%s)", i+1, e.Name)
	}
	return fmt.Sprintf("token %d", i+1)
}

func (e *tokenEntry) caller() (*Caller, error) {
	rules := Rules{Name: e.Name, Plans: e.Plans, Overrides: e.Overrides, MaxInflight: e.MaxInflight}
	for i, word := range e.Allow {
		g, ok := request.ParseGrant(word)
		if !ok {
			return nil, fmt.Errorf("allow: word %d is none of scheduling, trace, explain and now", i+1)
		}
		rules.Grants = append(rules.Grants, g)
	}
	c, err := NewCaller(rules)
	if err != nil {
		return nil, err
	}
	if len(e.Plans) == 0 {
		return nil, errors.New(`plans is missing; ["*"] allows all plans`)
	}
	digest, err := hex.DecodeString(e.SHA256)
	if err != nil || len(digest) != sha256.Size {
		return nil, fmt.Errorf("sha256 must be the SHA-256 of the token, %d hexadecimal digits", hex.EncodedLen(sha256.Size))
	}
	copy(c.digest[:], digest)
	if c.digest == sha256.Sum256(nil) {
		return nil, errors.New("sha256 is the digest of an empty token")
	}
	return c, nil
}

// readFile returns the content of a regular file. It refuses a file whose mode has a bit of refused: others could
// change or read it.
func readFile(path string, refused fs.FileMode) ([]byte, error) {
	info, err := os.Stat(path) // before it is opened: opening a pipe waits for a writer
	if err != nil {
		return nil, fileError(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fileError(path, errors.New("is not a regular file"))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, fileError(path, err)
	}
	if excess := info.Mode().Perm() & refused; excess != 0 {
		who := "others than its owner may change it"
		if excess&othersWrite == 0 {
			who = "everybody may read it"
		}
		return nil, fileError(path, fmt.Errorf("%s: its mode is %04o, and must not have %04o", who, info.Mode().Perm(), excess))
	}
	text, err := io.ReadAll(io.LimitReader(f, fileMaxBytes+1))
	if err != nil {
		return nil, fileError(path, err)
	}
	if len(text) > fileMaxBytes {
		return nil, fileError(path, fmt.Errorf("is larger than %d bytes", fileMaxBytes))
	}
	return fileio.WithoutMark(text), nil
}

// fileError puts the name of a file before each line of an error.
func fileError(path string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range several.Unwrap() {
			all = append(all, fileError(path, e))
		}
		return errors.Join(all...)
	}
	return fmt.Errorf("%s: %w", errtext.Name(path), err)
}
