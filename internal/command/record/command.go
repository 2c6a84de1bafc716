// Package record has the command "rankd record", which works on files of recorded requests. A [Program] and its commands belong
// to one goroutine.
package record

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/trace/record"
)

// Program is the program whose command this is. Its errors tell the exit status, as in package
// command. One goroutine.
type Program struct {
	Stdout, Stderr io.Writer
}

// Command returns the command "rankd record" with those below it.
func (p *Program) Command() *cobra.Command {
	return cmdline.Group("record", "Show recorded requests, join files of them, or remove a user from them", p.showCommand(), p.mergeCommand(), p.purgeCommand())
}

// torn says that a file has no end.
func (p *Program) torn(path string, torn *record.Torn) {
	fmt.Fprintf(p.Stderr, "rankd: %s: %v\n", errtext.Name(path), torn)
}

// noCheck: the table of flags says all.
func noCheck() error { return nil }

func (p *Program) mergeCommand() *cobra.Command {
	var in cmdline.RecordFiles
	var recipients []string
	out := ""
	return cmdline.WithFlags(&cobra.Command{
		Use: "merge FILE|DIR... [flags]", Args: cobra.MinimumNArgs(1),
		Short: "Write the requests of files to one file",
		Long: `Write the requests of files to a new one. Of requests that are there again it has one. Each keeps the
probability with which its user was recorded. Files whose shares of users can't be combined are
refused. The new file is encrypted to the recipients of the files.`,
		Example: `  rankd record merge records --out all.rec
  rankd record merge a.rec b.rec --identity_file key.txt --encrypt_to age1… --out all.rec`,
		RunE: func(_ *cobra.Command, args []string) error {
			paths, err := in.Open(args)
			if err != nil {
				return err
			}
			f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
			if err != nil {
				return cmdline.Runtime(err)
			}
			_ = f.Close() // What replaces it keeps its permissions.
			var done record.Merged
			err = fileio.ReplaceBy(out, func(to *bufio.Writer) (err error) {
				done, err = record.Merge(to, paths, record.MergeOptions{Read: in.Read, Recipients: recipients, Torn: p.torn})
				return err
			})
			if err != nil {
				err = errors.Join(err, os.Remove(out))
			} else {
				_, err = fmt.Fprintf(p.Stdout, "%s of %s; %d were there again\n", errtext.Count(done.Requests, "request"), errtext.Count(len(paths), "file"), done.Twice)
			}
			return cmdline.Runtime(err)
		},
	}, []string{"out"}, noCheck, []cmdline.Setting{
		{Name: "out", To: &out, Help: "write this `file`, which must not exist"},
		in.Setting(),
		{Name: "encrypt_to", To: &recipients, Help: "public `keys` of age to which the new file is encrypted; without it those of the files"},
	})
}

func (p *Program) purgeCommand() *cobra.Command {
	var in cmdline.RecordFiles
	user := ""
	return cmdline.WithFlags(&cobra.Command{
		Use: "purge FILE|DIR... [flags]", Args: cobra.MinimumNArgs(1),
		Short: "Remove the requests of a user",
		Long: `Remove the requests of a user from files, with all that only these requests needed. What other
users' requests got stays, even where it is about the user. A file that a server still writes stays
as it is; run the command again when the server has begun another one.`,
		Example: `  rankd record purge records --user 7 --identity_file key.txt`,
		RunE: func(_ *cobra.Command, args []string) error {
			paths, err := in.Open(args)
			if err != nil {
				return err
			}
			requests, files := 0, 0
			var problems []error
			for _, path := range paths {
				done, err := record.Purge(path, user, in.Read)
				if errors.Is(err, syscall.EWOULDBLOCK) {
					err = errors.New("a process writes it, and it stays as it is")
				}
				if err != nil {
					problems = append(problems, fmt.Errorf("%s: %w", errtext.Name(path), err))
					continue
				}
				if done.Torn != nil {
					p.torn(path, done.Torn)
				}
				if requests += done.Requests; done.Requests > 0 {
					files++
				}
			}
			_, err = fmt.Fprintf(p.Stdout, "%s gone from %s\n", errtext.Count(requests, "request"), errtext.Count(files, "file"))
			return cmdline.Runtime(errors.Join(append(problems, err)...))
		},
	}, []string{"user"}, noCheck, []cmdline.Setting{
		{Name: "user", To: &user, Help: "the `id` of the user"},
		in.Setting(),
	})
}
