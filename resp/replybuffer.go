package resp

import "github.com/rankd/rankd/loop/clock"

// A ReplyBuffer holds the replies of one blocking call for as long as its owner
// likes: until the next Exchange into it. The zero value is ready; it belongs to the
// client that it was first used with. One goroutine at a time.
type ReplyBuffer struct{ reader *reader }

// Exchange is Do with the replies left in buf instead of handed to a function:
// they stay valid until the next Exchange into buf.
func (c *SyncClient) Exchange(b *Batch, deadline clock.Time, buf *ReplyBuffer) (Replies, error) {
	b.mustBeWhole()
	if buf.reader == nil {
		buf.reader = c.newReader()
	}
	buf.reader.reset()
	return c.exchange(b, deadline, buf.reader)
}
