package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/serve/admin"
)

const reloadLong = `Have a "rankd serve" read its plans, models and tables again, or return to those before.

The server changes all of them at once, or nothing: requests that have begun end as they began. An error says which file is
wrong, where, and why. docs/change-a-plan.md describes what happens.`

const reloadExamples = `  # After a change of a plan:
  rankd reload

  # That was wrong:
  rankd reload --back`

// reloadAnswerMax bounds the answer of a server.
const reloadAnswerMax = 16 << 20

// ReloadCommand returns "rankd reload", which ends when ctx does. It writes to stdout.
func (p *Program) ReloadCommand(ctx context.Context, stdout io.Writer) *cobra.Command {
	var at string
	var back bool
	cmd := &cobra.Command{
		Use: "reload", Short: "Have a server read its plans, models and tables again", Long: reloadLong, Example: reloadExamples, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return reload(ctx, stdout, at, back) },
	}
	return cmdline.Dress(cmd, []cmdline.Setting{
		{Name: "admin", To: &at, Default: "127.0.0.1:8081", Help: "the `address` at which the server serves operators"},
		{Name: "back", To: &back, Help: "return to what the server served before the last reload"},
	}, "0  the server serves what its files say, or with --back what it served before",
		"1  something is wrong with the files, and the server serves what it did; or it could not be asked",
		"2  bad usage")
}

// reload asks the server whose operators are served at that address.
func reload(ctx context.Context, stdout io.Writer, at string, back bool) error {
	url := "http://" + at + "/reload"
	if back {
		url += "?back"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return fmt.Errorf("--admin: %w", err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return &cmdline.RuntimeError{Err: fmt.Errorf("asking the server: %w", err)}
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, reloadAnswerMax))
	var now admin.Reloaded
	switch {
	case err != nil:
	case answer.StatusCode != http.StatusOK:
		err = errors.New(strings.TrimSpace(string(body)))
	default:
		err = json.Unmarshal(body, &now)
	}
	if err != nil {
		return &cmdline.RuntimeError{Err: err}
	}
	_, err = fmt.Fprintf(stdout, "generation %d, digest %s, %d plans\n", now.Generation, now.Digest, len(now.Plans))
	return err
}
