package batch

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/rankd/rankd"
)

// retried is the end of the name of the answers that have those of retried users in their place.
const retried = ".retried"

// retryShare is how many times fewer users run at a time than before.
const retryShare = 4

// retry ranks the users again whose answers were degraded. Their answers and the others become a new file, in the order of all users, so an end or a kill
// leaves what was there. A line of the file of retries has the place of the answer, and the request.
func (r *running) retry(ctx context.Context) error {
	r.window = newWindow(max(1, r.window.limit/retryShare))
	file, err := os.Open(r.path("retry") + partial)
	if err != nil {
		return err
	}
	defer file.Close()
	in := bufio.NewReaderSize(io.LimitReader(file, r.RetryBytes), 1<<20)
	fill := func(int64) error { return nil } // copies the answers before a place
	end := int64(0)
	if r.lists == nil {
		old, err := os.Open(r.Out + partial)
		if err != nil {
			return err
		}
		defer old.Close()
		merged, err := openOutput(r.disk, r.Out+retried, 0)
		if err != nil {
			return err
		}
		r.answers.close()
		r.answers, end = merged, r.AnswerBytes
		copied := int64(0)
		fill = func(place int64) error {
			n, err := io.CopyN(merged.to, old, place-copied)
			copied, merged.bytes = copied+n, merged.bytes+n
			return err
		}
	}
	r.retries.close()
	r.retries = nil
	next := func() (line []byte, q rankd.Request, refused, err error) {
		if line, err = in.ReadBytes('\n'); err != nil {
			return nil, q, nil, err
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		_, doc, _ := bytes.Cut(line, []byte(" "))
		q, refused = Parse(r.Engine, doc)
		return line, q, refused, nil
	}
	ended, err := r.each(ctx, next, func(p *Entry) error {
		at, doc, _ := bytes.Cut(p.Input, []byte(" "))
		place, err := strconv.ParseInt(string(at), 10, 64)
		if err == nil {
			err = fill(place)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file.Name(), err)
		}
		p.Input = doc
		r.Summary.Retried++
		if p.Err == nil && p.Answer.Degraded() {
			r.Summary.Add(p.Answer)
			p.Err = errDegraded
		}
		return r.outcome(p)
	})
	if err == nil && !ended {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = fill(end)
	}
	if err == nil {
		err = r.reach(stateWhole)
	}
	return err
}

// errDegraded is the error of users whose answers are degraded again.
var errDegraded = errors.New("the answer is degraded, and was before")
