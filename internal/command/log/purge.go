package log

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/served"
)

func (p *Program) purgeCommand() *cobra.Command {
	dir, user, keyFile := "", "", ""
	return cmdline.WithFlags(&cobra.Command{
		Use:   "purge [flags]",
		Short: "Remove the lines of a user",
		Long: `Remove the lines of a user from the files of the log of what was served: those with the user's id, and
with --user_key_file those with a name by any key of that file. A file that a server still writes stays
as it is; run the command again when the server has begun another one.`,
		Example: `  rankd log purge --served served --user 7 --user_key_file keys`,
		RunE: func(*cobra.Command, []string) (err error) {
			var keys *served.Keys
			if keyFile != "" {
				if keys, err = served.ReadKeys(keyFile); err != nil {
					return fmt.Errorf("--user_key_file: %w", err)
				}
			}
			done, err := served.Purge(dir, user, keys)
			_, told := fmt.Fprintf(p.Stdout, "%d lines are gone from %d files\n", done.Lines, done.Files)
			if err = cmp.Or(err, told); err == nil && len(done.Left) > 0 {
				var left []string
				for _, path := range done.Left {
					left = append(left, errtext.Name(path))
				}
				err = fmt.Errorf("a process writes these files, which stay as they are: %s", strings.Join(left, ", "))
			}
			if err == nil && done.Unknown > 0 {
				err = fmt.Errorf("%d lines stay that may be the user's: they have names by keys that --user_key_file does not have", done.Unknown)
			}
			return cmdline.Runtime(err)
		},
	}, []string{"served", "user"}, func() error { return nil }, []cmdline.Setting{
		{Name: "served", To: &dir, Help: "remove lines from the files of this `folder`"},
		{Name: "user", To: &user, Help: "the `id` of the user"},
		{Name: "user_key_file", To: &keyFile, Help: "the `file` of the keys by which users were written"},
	})
}
