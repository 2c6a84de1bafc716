package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
)

// Bounds of what infer asks Redis for.
const (
	scanCount  = 1000 // keys that one SCAN looks at
	scansMax   = 1000 // SCANs
	fieldsMax  = 1000 // of a hash; a larger one is not a row
	samplesMax = 100_000
)

func (p *Program) inferCommand(ctx context.Context) *cobra.Command {
	var redis, output string
	var samples int
	var force bool
	settings := []cmdline.Setting{
		{Name: "redis", To: &redis, Help: "ask the Redis at this `address`: host:port or a URL, as in rankd --redis"},
		{Name: "samples", To: &samples, Default: 300, Least: 1, Most: samplesMax, Help: "read this `number` of hashes"},
		{Name: "output", To: &output, Help: "write the table to this new `file`, not to stdout"},
		{Name: "force", To: &force, Help: "replace the file of --output if it exists"},
	}
	cmd := &cobra.Command{
		Use: "infer pattern [flags]", Short: "Write a table of columns for the hashes whose keys match a pattern",
		Long: `Read some of the hashes whose keys match a pattern, as SCAN takes it, and write a table of columns in the short
form: a guess at the type of each field. A comment on each says in how many hashes it is missing, what speaks
against the guess, and the first values. Keys of other types are counted.`,
		Example: `  rankd registry infer 'product:*' --redis 127.0.0.1:6379 --output registry/keys.toml
  rankd registry infer 'user:*' --redis 127.0.0.1:6379 >> registry/keys.toml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("rankd registry infer takes one pattern, not %d; quote it, as in 'product:*'", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(cmdline.CheckValues(cmd.Flags()), cmdline.CheckSettings(cmd.Flags(), settings)); err != nil {
				return err
			}
			if redis == "" {
				return errors.New("rankd registry infer needs a Redis: --redis host:port, or redis in rankd.toml")
			}
			if err := devredis.Check(redis); err != nil {
				return fmt.Errorf("--redis: %w", err)
			}
			if _, err := os.Stat(output); output != "" && err == nil && !force {
				return fmt.Errorf("--output: %s exists; --force replaces it", errtext.Name(output))
			}
			f := finding{pattern: args[0], others: make(map[string]*other)}
			err := devredis.EachMaster(ctx, redis, func(c *blocking.Client) error { return f.read(c, samples) })
			if err != nil {
				return &cmdline.RuntimeError{Err: err}
			}
			var text bytes.Buffer
			if err := f.write(&text); err != nil {
				return err
			}
			if output == "" {
				_, err = p.Stdout.Write(text.Bytes())
				return err
			}
			return writeTable(output, text.Bytes(), force)
		},
	}
	cmdline.AddSettings(cmd.Flags(), settings)
	return cmd
}

// writeTable writes the file. It replaces one only if told.
func writeTable(path string, text []byte, replace bool) error {
	how := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if replace {
		how = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(path, how, 0o666)
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return &cmdline.RuntimeError{Err: err}
	}
	return nil
}

// An other is the keys of a type that is not hash. One goroutine.
type other struct {
	keys  int
	first string
}

// A finding is what a Redis has under a pattern. One goroutine.
type finding struct {
	pattern string
	keys    int // that were looked at
	sample  sample
	others  map[string]*other // by type
}

// read looks for keys of one master until there are enough hashes, SCAN ends, or its bound is reached.
func (f *finding) read(c *blocking.Client, hashes int) error {
	if f.sample.hashes >= hashes {
		return nil
	}
	seen := make(map[string]bool) // SCAN may return a key twice
	scans := 0
	return devredis.Scan(c, f.pattern, scanCount, func(found resp.Reply) (more bool, err error) {
		var keys []string
		for key := range found.All() {
			if key := string(key.Bytes()); !seen[key] {
				seen[key] = true
				keys = append(keys, key)
			}
		}
		err = f.readKeys(c, keys, hashes)
		scans++
		return scans < scansMax && f.sample.hashes < hashes, err
	})
}

// readKeys reads those of the keys that are hashes, and counts the others.
func (f *finding) readKeys(c *blocking.Client, keys []string, hashes int) error {
	var found []string
	err := ask(c, each("TYPE", keys), func(i int, r resp.Reply) {
		f.keys++
		switch t := string(r.Bytes()); t {
		case "hash":
			found = append(found, keys[i])
		case "none": // It has gone since.
		default:
			f.count("of type "+t, keys[i])
		}
	})
	if err != nil {
		return err
	}
	found = found[:min(len(found), hashes-f.sample.hashes)]
	var rows []string
	err = ask(c, each("HLEN", found), func(i int, r resp.Reply) {
		switch n := r.Int(); {
		case n > fieldsMax:
			f.count(fmt.Sprintf("of type hash with more than %d fields", fieldsMax), found[i])
		case n > 0:
			rows = append(rows, found[i])
		}
	})
	if err != nil {
		return err
	}
	for rows := range slices.Chunk(rows, 50) {
		err := ask(c, each("HGETALL", rows), func(_ int, r resp.Reply) {
			f.sample.hashes++
			for field, value := range r.Pairs() {
				f.sample.add(string(field.Bytes()), string(value.Bytes()))
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *finding) count(what, key string) {
	o := f.others[what]
	if o == nil {
		o = &other{first: key}
		f.others[what] = o
	}
	o.keys++
}

// each returns a command for each key.
func each(name string, keys []string) [][]string {
	all := make([][]string, len(keys))
	for i, key := range keys {
		all[i] = []string{name, key}
	}
	return all
}

// ask sends commands and hands over their replies. The error is the first, and names the command.
func ask(c *blocking.Client, commands [][]string, each func(i int, r resp.Reply)) error {
	if len(commands) == 0 {
		return nil
	}
	var b resp.Batch
	for _, words := range commands {
		b.Cmd(words...)
	}
	return c.Do(&b, 0, func(replies resp.Replies) error {
		for i, r := range replies.All() {
			if err := r.Err(); err != nil {
				return fmt.Errorf("%s %s: %w", commands[i][0], errtext.Quote(commands[i][1]), err)
			}
			each(i, r)
		}
		return nil
	})
}

// write writes the table and what was found beside it.
func (f *finding) write(w io.Writer) error {
	var others []string
	for _, what := range slices.Sorted(maps.Keys(f.others)) {
		o := f.others[what]
		others = append(others, fmt.Sprintf("keys %s: %d, such as %s", errtext.Text(what), o.keys, errtext.Quote(o.first)))
	}
	if f.sample.hashes == 0 {
		found := ""
		if len(others) > 0 {
			found = "; " + strings.Join(others, "; ")
		}
		return fmt.Errorf("no hash has a key like %s%s", errtext.Quote(f.pattern), found)
	}
	fmt.Fprintf(w, "# A guess from %d hashes with keys like %s. Check it, and run rankd registry lock.\n", f.sample.hashes, errtext.Quote(f.pattern))
	for _, o := range others {
		fmt.Fprintf(w, "# Not read: %s.\n", o)
	}
	entity, _, _ := strings.Cut(f.pattern, ":")
	entity, _, _ = strings.Cut(entity, "*")
	return f.sample.writeTable(w, entityName(entity))
}
