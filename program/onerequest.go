package program

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/request"
)

// oneRequest are the flags of a command that runs one request: rankd explain and rankd trace. Immutable once checked.
type oneRequest struct {
	options // those that it shares with the root command

	user     string
	document string
}

// settings are the flags of a command that has those of own, too.
func (o *oneRequest) settings(own []cmdline.Setting) []cmdline.Setting {
	return slices.Concat([]cmdline.Setting{
		{Name: "user", To: &o.user, Default: "1", Help: "run the request for the user of this `id`"},
		{Name: "request", To: &o.document, Help: "run this request, a `document` as on the stdin of rankd, in place of --user"},
	}, own, o.PlanSettings(), o.EngineSettings(), o.SchedulingSettings(), o.DeadlineSettings())
}

// needsPlan returns an error if nothing says which plan the command runs.
func (o *oneRequest) needsPlan(command string) error {
	if o.PlanFile == "" && o.Plan == "" && (o.document == "" || o.PlansDir == "") {
		return errors.New("rankd " + command + " needs a plan: --plan_name or --plan")
	}
	return nil
}

// of returns the request of --request, or one for the user of --user.
func (o *oneRequest) of(e *rankd.Engine) (rankd.Request, error) {
	if o.document != "" {
		r, err := e.ParseRequest([]byte(o.document))
		if err != nil {
			return r, fmt.Errorf("--request: %w", err)
		}
		return r, nil
	}
	var g request.Given
	if err := g.SetUserID([]byte(o.user), e.Registry()); err != nil {
		return rankd.Request{}, fmt.Errorf("--user: %w", err)
	}
	return e.Intake().Parse(nil, g)
}
