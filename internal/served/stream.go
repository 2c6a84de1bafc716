package served

import (
	"bytes"
	"strconv"

	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/resp"
)

// Stream is an io.Writer of lines to a stream of Redis, an entry each. One goroutine.
type Stream struct {
	client       devredis.Caller
	key, entries string
	batch        resp.Batch
}

// NewStream returns a writer to the stream at key in the Redis that text names. The stream keeps about so many entries. It connects at the
// first write.
func NewStream(text, key string, entries int) (*Stream, error) {
	client, err := devredis.NewCaller(text)
	if err != nil {
		return nil, err
	}
	return &Stream{client: client, key: key, entries: strconv.Itoa(entries)}, nil
}

// Write implements io.Writer. n is the end of the last line before the first that Redis did not take.
func (s *Stream) Write(p []byte) (n int, err error) {
	s.batch.Reset()
	for line := range bytes.Lines(p) {
		s.batch.Cmd("XADD", s.key, "MAXLEN", "~", s.entries, "*", "line", string(bytes.TrimSuffix(line, []byte{'\n'})))
	}
	err = s.client.Do(&s.batch, 0, func(replies resp.Replies) error {
		for _, r := range replies.All() {
			if err := r.Err(); err != nil {
				return err
			}
			n += bytes.IndexByte(p[n:], '\n') + 1
		}
		return nil
	})
	return n, err
}

// Close ends the connection.
func (s *Stream) Close() error {
	s.client.Close()
	return nil
}
