package program

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/explain"
	"github.com/rankd/rankd/internal/request"
)

const explainLong = `Run one request and say why its rows are where they are, and why ids are missing.

For a returned row: the node that made it, its rank before and after each node, each column with the node
that wrote it, and the expression of a score with the value of each part. For an id that is not returned: the
node at which it went, and why. It is read from the rows of this very run. docs/explain.md has an example.`

const explainExamples = `  # Why is item 42 where it is, or not there at all?
  rankd explain --plan_name complex_dag --user 1 --item 42

  # All rows of the answer, as JSON, as a server answers "explain": true:
  rankd explain --plan_name complex_dag --user 1 --json`

// explainOptions are the flags of rankd explain. Immutable once checked.
type explainOptions struct {
	oneRequest

	items []string
	json  bool

	ids   []int64  // of items, set by check
	texts []string // the other items
}

// explainCommand returns "rankd explain".
func (p *program) explainCommand(ctx context.Context) *cobra.Command {
	var o explainOptions
	o.EngineFlags.Options = p.own
	o.tracing, o.AllowRequestExplain, o.AllowRequestNow = true, true, true
	cmd := &cobra.Command{
		Use: "explain", Short: "Run one request and say why rows are in its answer, or are not", Long: explainLong, Example: explainExamples,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.Flags()); err != nil {
				return err
			}
			return p.explainRequest(ctx, &o)
		},
	}
	return cmdline.Dress(cmd, o.settings([]cmdline.Setting{
		{Name: "item", To: &o.items, Help: "explain these `ids`, such as 7, product:7 or sku-1, with commas between them; all rows of the answer if this flag is missing"},
		{Name: "json", To: &o.json, Help: "print the explanation as JSON"},
	}), "0  the request succeeded, whether or not the items are in its answer",
		"1  the request failed",
		"2  bad usage or a bad plan")
}

// check reports all that is wrong with the options at once, and completes them.
func (o *explainOptions) check(given *pflag.FlagSet) error {
	if err := cmdline.CheckExclusive(given, "user", "request"); err != nil {
		return err
	}
	problems := []error{o.options.check(given), o.needsPlan("explain")}
	if len(o.items) > request.ExplainIDsMax {
		problems = append(problems, fmt.Errorf("--item lists at most %d ids, not %d", request.ExplainIDsMax, len(o.items)))
	}
	for _, item := range o.items {
		id, err := strconv.ParseInt(strings.TrimSpace(item), 10, 64)
		if err != nil {
			o.texts = append(o.texts, strings.TrimSpace(item))
		} else {
			o.ids = append(o.ids, id)
		}
	}
	return errors.Join(problems...)
}

// explainRequest runs the request and prints its explanation.
func (p *program) explainRequest(ctx context.Context, o *explainOptions) error {
	p.tune(o.CPUThreads)
	redis := new(cmdline.EmbeddedRedis)
	defer redis.Close()
	e, err := openEngine(&o.options, setting{stderr: p.stderr, plans: p.plans, redis: redis})
	if err != nil {
		return err
	}
	defer e.Close()
	if len(o.texts) > 0 && len(e.Registry().Entities()) == 0 {
		return fmt.Errorf("--item lists integers of 64 bits, not %s: the registry declares no entities", errtext.Quote(o.texts[0]))
	}
	r, err := o.of(e)
	if err != nil {
		return err
	}
	if len(o.items) > 0 {
		r.Explain = rankd.Explain{IDs: o.ids, Items: o.texts}
	} else if !r.Explain.Asked() {
		r.Explain = rankd.Explain{All: true}
	}
	answer, err := e.Rank(ctx, r)
	if err != nil {
		return &cmdline.RuntimeError{Err: err}
	}
	why := answer.Explanation()
	if o.json {
		doc, _ := why.MarshalJSON() // It has nothing that JSON lacks.
		_, err = fmt.Fprintf(p.stdout, "%s\n", doc)
		return err
	}
	fmt.Fprintf(p.stdout, "%s ranked %s for user %s.\n\n", errtext.Text(answer.Plan), errtext.Count(answer.Len(), "row"), errtext.Text(string(request.AppendUser(nil, &r))))
	return explain.Text(p.stdout, why)
}
