package batch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
)

const (
	scanCount   = 1000     // keys that one SCAN looks at
	scanTries   = 5        // of a cluster whose slots move
	sortedBytes = 32 << 20 // of users are sorted in memory at once
)

// A Scan finds users by keys of a Redis. Immutable.
type Scan struct {
	redis         string
	text          string // as it was given
	before, after string // {user}
}

// NewScan returns a scan for the keys of a template, such as user:{user}, in a Redis or a Redis Cluster. registry.ParseServer reads the text that names
// it. A template is one as plans have it, whose only mark is {user}.
func NewScan(redis, template string, e *rankd.Engine) (*Scan, error) {
	t, err := plan.ParseKeyTemplate(template, e.Registry(), false)
	if err != nil {
		return nil, fmt.Errorf("the key of the users %w", err)
	}
	s, users := &Scan{redis: redis, text: template}, 0
	text := &s.before
	for _, part := range t.Before { // The others are there only with {id}.
		switch {
		case part.User:
			users++
			text = &s.after
		case part.Param != nil:
			users = 2
		default:
			*text = part.Text
		}
	}
	if users != 1 || t.PerRow() {
		return nil, fmt.Errorf("the key of the users has the mark {user} once, and no other, such as user:{user}: %q", template)
	}
	return s, nil
}

// glob returns the pattern for SCAN.
func (s *Scan) glob() string { return globText(s.before) + "*" + globText(s.after) }

// globText returns the pattern that matches only the text.
func globText(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}

// find writes the users to a file, unless the file is there: then it reports false. The file has each user once. Shorter ids come
// first, and ids of one length are in the order of their bytes, as numbers are.
func (s *Scan) find(ctx context.Context, d disk, path string, e *rankd.Engine, asked func(found int)) (skipped int, found bool, err error) {
	if _, err := os.Stat(path); err == nil {
		return 0, false, nil
	}
	users, added := fileio.NewSorter(filepath.Dir(path), sortedBytes, byLength), 0
	defer users.Close()
	for range scanTries {
		skipped = 0
		err = devredis.EachMaster(ctx, s.redis, func(c *blocking.Client) error {
			return devredis.Scan(c, s.glob(), scanCount, func(keys resp.Reply) (bool, error) {
				for key := range keys.All() {
					doc, ok := s.user(key.Bytes(), e)
					if !ok {
						skipped++
						continue
					}
					if err := users.Add(doc); err != nil {
						return false, err
					}
					added++
				}
				asked(added)
				return ctx.Err() == nil, context.Cause(ctx)
			})
		})
		if !errors.Is(err, devredis.ErrSlotsMove) {
			break
		}
	}
	if err == nil {
		err = writeOnce(users, d, path)
	}
	return skipped, true, err
}

// user returns the document of the user of a key. It reports false if the text is not a user's id.
func (s *Scan) user(key []byte, e *rankd.Engine) (doc []byte, ok bool) {
	if len(key) <= len(s.before)+len(s.after) || !utf8.Valid(key) {
		return nil, false
	}
	doc = appendUser(nil, string(key[len(s.before):len(key)-len(s.after)]))
	q, err := e.Intake().Parse(doc, request.Given{})
	if err != nil {
		return nil, false
	}
	return appendUser(doc[:0], userOf(&q)), true // 007 is user 7.
}

func byLength(a, b []byte) int { return cmp.Or(cmp.Compare(len(a), len(b)), bytes.Compare(a, b)) }

// writeOnce writes sorted users to a file, each once.
func writeOnce(users *fileio.Sorter, d disk, path string) error {
	out, err := openOutput(d, path, 0)
	if err != nil {
		return err
	}
	defer out.close()
	var last []byte
	err = users.Each(func(user []byte) error {
		if bytes.Equal(user, last) {
			return nil
		}
		last = append(last[:0], user...)
		return out.write(append(last, '\n'))
	})
	if err != nil {
		return err
	}
	return out.keep()
}
