package devredis

import (
	"context"
	"errors"
	"fmt"

	"github.com/rankd/rankd/resp"
)

// batchBytes is how many bytes of commands Write gathers before it sends them.
const batchBytes = 1 << 18

// Write sends the commands that each hands to write, in order, to the server that text names. It sends them in
// batches, and reads the replies to each batch before the next, so that neither side waits for the other's full
// buffers. The error is the first of each, of the connection, or of a reply; the last names the command and its key.
// each stops when write fails.
func Write(ctx context.Context, text string, each func(write func(command ...string) error) error) error {
	return WithAny(ctx, text, func(client Caller) error {
		var b resp.Batch
		var names []string // of the commands in b
		send := func() error {
			defer func() { names = names[:0]; b.Reset() }()
			return client.Do(&b, 0, func(replies resp.Replies) error {
				for i, r := range replies.All() {
					if err := r.Err(); err != nil {
						return fmt.Errorf("%s: %w", names[i], err)
					}
				}
				return nil
			})
		}
		err := each(func(command ...string) error {
			b.Cmd(command...)
			names = append(names, command[0]+" "+command[1])
			if len(b.Encoded()) < batchBytes {
				return nil
			}
			return send()
		})
		if err == nil && b.Len() > 0 {
			err = send()
		}
		return err
	})
}

// Refill is Write for commands that each make a key: it deletes the key before.
func Refill(ctx context.Context, text string, each func(write func(command ...string) error) error) error {
	return Write(ctx, text, func(write func(command ...string) error) error {
		return each(func(command ...string) error { return errors.Join(write("DEL", command[1]), write(command...)) })
	})
}
