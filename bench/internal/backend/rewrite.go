package backend

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
)

// rewritePause is how often a Rewriter writes, and rewriteMost how many keys it writes at once.
const (
	rewritePause = time.Millisecond
	rewriteMost  = 1000
)

// A Rewriter writes keys of the server again with the values that they have, as other programs do. It has a connection of its own. One
// goroutine at a time.
type Rewriter struct {
	server string
	writes [][]string // a command for each key, in no order
}

// NewRewriter reads all keys of the server. Nobody else may change them meanwhile and afterwards.
func (b *Backend) NewRewriter(ctx context.Context) (*Rewriter, error) {
	w := &Rewriter{server: b.addr}
	err := devredis.WithClient(ctx, b.addr, func(client *blocking.Client) error {
		for cursor := "0"; ; {
			var keys []string
			err := exchange(client, [][]string{{"SCAN", cursor, "COUNT", "1000"}}, func(_ int, r resp.Reply) {
				cursor = string(r.At(0).Bytes())
				for key := range r.At(1).All() {
					keys = append(keys, string(key.Bytes()))
				}
			})
			if err == nil {
				err = w.add(client, keys)
			}
			if err != nil || cursor == "0" {
				return err
			}
		}
	})
	if err == nil && len(w.writes) == 0 {
		err = fmt.Errorf("the server %s has no keys to write", b.addr)
	}
	if err != nil {
		return nil, err
	}
	order := rand.New(rand.NewPCG(1, 2)) // the same in each run
	order.Shuffle(len(w.writes), func(i, j int) { w.writes[i], w.writes[j] = w.writes[j], w.writes[i] })
	return w, nil
}

// add reads what it takes to write the keys again.
func (w *Rewriter) add(client *blocking.Client, keys []string) error {
	types, reads := make([][]string, len(keys)), make([][]string, len(keys))
	for i, key := range keys {
		types[i] = []string{"TYPE", key}
	}
	writes := make([]func(resp.Reply) []string, len(keys))
	err := exchange(client, types, func(i int, r resp.Reply) { reads[i], writes[i] = rewriting(keys[i], string(r.Bytes())) })
	if err != nil {
		return err
	}
	return exchange(client, reads, func(i int, r resp.Reply) { w.writes = append(w.writes, writes[i](r)) })
}

// rewriting returns the command that reads of a key what write makes a command of: of hashes and lists one value, and of the other
// types the whole value.
func rewriting(key, kind string) (read []string, write func(resp.Reply) []string) {
	switch kind {
	case "hash":
		return []string{"HGETALL", key}, func(r resp.Reply) []string {
			return []string{"HSET", key, string(r.At(0).Bytes()), string(r.At(1).Bytes())}
		}
	case "list":
		return []string{"LINDEX", key, "0"}, func(r resp.Reply) []string { return []string{"LSET", key, "0", string(r.Bytes())} }
	case "string":
		return []string{"GET", key}, func(r resp.Reply) []string { return []string{"SET", key, string(r.Bytes())} }
	default:
		return []string{"DUMP", key}, func(r resp.Reply) []string { return []string{"RESTORE", key, "0", string(r.Bytes()), "REPLACE"} }
	}
}

// Begin writes rate keys a second, evenly, until the end of ctx or of the call that it returns, which waits for the last reply and returns
// how many keys a second were written. A server that takes fewer is not asked for the rest later.
func (w *Rewriter) Begin(ctx context.Context, rate int) (end func() (perSecond float64, err error)) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	began := time.Now()
	var written int
	var failure error
	go func() {
		defer close(ended)
		failure = devredis.WithClient(context.WithoutCancel(ctx), w.server, func(client *blocking.Client) (err error) {
			written, err = w.write(ctx, client, rate, began)
			return err
		})
	}()
	return func() (float64, error) {
		cancel()
		<-ended
		return float64(written) / time.Since(began).Seconds(), failure
	}
}

func (w *Rewriter) write(ctx context.Context, client *blocking.Client, rate int, began time.Time) (written int, err error) {
	ticks := time.NewTicker(rewritePause)
	defer ticks.Stop()
	skipped, next := 0, rand.IntN(len(w.writes))
	batch := make([][]string, 0, rewriteMost)
	for {
		select {
		case <-ctx.Done():
			return written, nil
		case <-ticks.C:
		}
		due := int(time.Since(began).Seconds()*float64(rate)) - written - skipped
		skipped += max(0, due-rewriteMost)
		batch = batch[:0]
		for range min(due, rewriteMost) {
			batch = append(batch, w.writes[next])
			next = (next + 1) % len(w.writes)
		}
		if err := exchange(client, batch, func(int, resp.Reply) {}); err != nil {
			return written, err
		}
		written += len(batch)
	}
}

// exchange sends commands at once and calls use with each reply. The error is the first, of the connection or of a reply.
func exchange(client *blocking.Client, commands [][]string, use func(i int, r resp.Reply)) error {
	var b resp.Batch
	for _, c := range commands {
		b.Cmd(c...)
	}
	return client.Do(&b, 0, func(replies resp.Replies) error {
		for i, r := range replies.All() {
			if err := r.Err(); err != nil {
				return fmt.Errorf("%s %s: %w", commands[i][0], commands[i][1], err)
			}
			use(i, r)
		}
		return nil
	})
}
