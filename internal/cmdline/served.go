package cmdline

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/served"
)

// servedFlags are the flags of the log of what was served. Immutable once checked.
type servedFlags struct {
	to, key           string
	entries, megabyte int
}

// ServedSettings are the flags of the log of what was served.
func (e *EngineFlags) ServedSettings() []Setting {
	s := &e.served
	without := func() string { return when(s.to == "", "without --served_log") }
	stream := func() string { return when(!strings.Contains(s.to, "://"), "without a Redis as --served_log") }
	return []Setting{
		{Name: "served_log", To: &s.to, See: "served-log.md",
			Help: "write a line for each answer, with the values that were scored, to files in this `folder`, or to a stream of Redis at redis://host:port/db; rankd serve also takes - for stdout"},
		{Name: "served_log_key", To: &s.key, Default: "rankd:served", Idle: stream, Help: "the `key` of the stream"},
		{Name: "served_log_entries", To: &s.entries, Default: 1_000_000, Least: 1, Most: 1 << 40, Idle: stream, Help: "keep about this `number` of entries in the stream"},
		{Name: "served_log_mb", To: &s.megabyte, Default: 64, Least: 1, Most: 1 << 20, Help: "end a file once it has this `number` of megabytes",
			Idle: func() string {
				return when(s.to == "" || s.to == "-" || strings.Contains(s.to, "://"), "without a folder as --served_log")
			}},
		{Name: "served_log_users", To: &e.ServedUsers, Default: 100.0, Idle: without, Help: "write lines for this `number` in a hundred users, above 0"},
		{Name: "user_key_file", To: &e.ServedUserKeys, Idle: without, See: "served-log.md#privacy",
			Help: "write users as keyed hashes, by the first key in this `file` of lines NAME SECRET"},
	}
}

// checkServed reports what is wrong with the flags, and completes them.
func (e *EngineFlags) checkServed() error {
	var problems []error
	if e.ServedUsers < 0 || e.ServedUsers > 100 || e.served.to != "" && e.ServedUsers == 0 {
		problems = append(problems, fmt.Errorf("--served_log_users is a number above 0, up to 100, not %v", e.ServedUsers))
	}
	if e.served.to == "-" && !e.StdoutIsFree {
		problems = append(problems, errors.New("--served_log - is for rankd serve: stdout has the answers, or the summary, of this command; name a folder"))
	}
	if e.served.to == "" {
		e.ServedUsers, e.ServedUserKeys = 0, ""
	}
	return errors.Join(problems...)
}

// openServed gives the options the log of what is served. The caller calls close once the engine is closed.
func (e *EngineFlags) openServed(o *rankd.Options, stdout io.Writer) (close func() error, err error) {
	s := &e.served
	var to io.WriteCloser
	switch {
	case s.to == "":
		return func() error { return nil }, nil
	case s.to == "-":
		o.Served = stdout
		return func() error { return nil }, nil
	case strings.Contains(s.to, "://"):
		to, err = served.NewStream(s.to, s.key, s.entries)
	default:
		to, err = served.NewFiles(s.to, int64(s.megabyte)<<20)
	}
	if err != nil {
		return nil, fmt.Errorf("--served_log: %w", err)
	}
	o.Served = to
	return to.Close, nil
}

// ServedLoss says what the log of what was served has lost; empty: nothing, or there is none.
func ServedLoss(e *rankd.Engine) string {
	n := e.ServedLines()
	if n.Dropped+n.Failed == 0 {
		return ""
	}
	return fmt.Sprintf("--served_log: %d lines are lost of %d: %d came faster than they could be written, %d could not be written",
		n.Dropped+n.Failed, n.Written+n.Dropped+n.Failed, n.Dropped, n.Failed)
}
