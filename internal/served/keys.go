package served

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
)

// The bounds of a file of keys.
const (
	secretBytesMin = 32
	keysBytesMax   = 1 << 20
	keysEvery      = 5 * time.Second // how often a file is read again
)

// userKey is a line of a file of keys. Immutable.
type userKey struct {
	id     string
	secret []byte
}

// Keys are the keys by which users are hashed: a file with a line "NAME SECRET" each, the newest first. The first key
// makes names; a file that has changed is read again after some seconds. One goroutine.
type Keys struct {
	path string
	keys []userKey
	next time.Time // when the file is due again
}

// ReadKeys reads a file of keys. The error names the file and the line, and quotes no secret.
func ReadKeys(path string) (*Keys, error) {
	k := &Keys{path: path}
	return k, k.read()
}

// OneKey returns a key that nobody else has, which is not in a file.
func OneKey() *Keys {
	return &Keys{keys: []userKey{{"once", []byte(rand.Text())}}, next: time.Unix(1<<40, 0)}
}

func (k *Keys) read() error {
	k.next = time.Now().Add(keysEvery)
	text, err := fileio.ReadRegular(k.path, keysBytesMax)
	var keys []userKey
	if err == nil {
		keys, err = parseKeys(text)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", errtext.Name(k.path), err)
	}
	k.keys = keys
	return nil
}

// parseKeys reads the lines of a file of keys.
func parseKeys(text []byte) (keys []userKey, err error) {
	number := 0
	for line := range bytes.Lines(text) {
		number++
		words := strings.Fields(string(line))
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
			continue
		case len(words) != 2:
			return nil, fmt.Errorf("line %d: a key is NAME SECRET, without further blanks", number)
		case strings.Contains(words[0], ":"):
			return nil, fmt.Errorf("line %d: the name of a key has no colon", number)
		case len(words[1]) < secretBytesMin:
			return nil, fmt.Errorf("line %d: a secret has at least %d bytes, not %d: head -c 32 /dev/urandom | base64 makes one", number, secretBytesMin, len(words[1]))
		}
		for _, key := range keys {
			if key.id == words[0] {
				return nil, fmt.Errorf("line %d: there are two keys %s", number, errtext.Quote(words[0]))
			}
		}
		keys = append(keys, userKey{words[0], []byte(words[1])})
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("there is no key: a line is NAME SECRET")
	}
	return keys, nil
}

// name returns the name of a user by the key.
func (k *userKey) name(user string) string {
	mac := hmac.New(sha256.New, k.secret)
	_, _ = mac.Write([]byte(user)) // a hash takes everything
	return nameStart + k.id + ":" + hex.EncodeToString(mac.Sum(nil))
}

// nameStart begins the names of users.
const nameStart = "hmac:"

// made reports whether one of the keys has made a name, or whether the text is not a name but an id. A nil Keys has no key.
func (k *Keys) made(user string) bool {
	id, _, named := strings.Cut(strings.TrimPrefix(user, nameStart), ":")
	if !named || !strings.HasPrefix(user, nameStart) {
		return true
	}
	return k != nil && slices.ContainsFunc(k.keys, func(key userKey) bool { return key.id == id })
}

// Name returns the name of a user by the newest key. A file that cannot be read any more leaves the keys as they are.
func (k *Keys) Name(user string) string {
	if time.Now().After(k.next) {
		_ = k.read()
	}
	return k.keys[0].name(user)
}

// Names returns the names of a user by all keys.
func (k *Keys) Names(user string) (names []string) {
	if k == nil {
		return nil
	}
	for _, key := range k.keys {
		names = append(names, key.name(user))
	}
	return names
}
