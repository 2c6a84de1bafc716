package batch

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/outcome"
	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/resp"
)

// Summary is the outcome of a job so far. One goroutine.
type Summary struct {
	Users     int                `json:"users"`                   // that have an answer, or failed
	Failed    int                `json:"failed"`                  // of these
	Degraded  int                `json:"degraded"`                // of these: something is missing in the answer; with Job.RetryDegraded they have failed
	Empty     int                `json:"empty"`                   // of these: the answer has no candidates
	Below     int                `json:"below_minimum,omitempty"` // of these: some output has fewer rows than its plan wants
	Fallback  int                `json:"fallback,omitempty"`      // of these: another plan has answered than was asked for
	Kept      int                `json:"kept"`                    // of these, those that were there at the start
	Seconds   float64            `json:"seconds"`
	PerSecond float64            `json:"users_per_second"`  // of those that were not kept
	Retried   int                `json:"retried,omitempty"` // degraded users that ran again
	Lacks     map[string]int     `json:"lacks,omitempty"`   // degraded answers by what is missing: "plan/node status", "plan/node timeout" if it ran out of time
	Errors    map[string]Failure `json:"errors,omitempty"`  // by class
	Skipped   int                `json:"keys_without_user,omitempty"`
	Version   int64              `json:"version,omitempty"` // of the lists
	Current   bool               `json:"current,omitempty"` // The pointer is at the version.
	// FailedFile has the users that failed; "": none has, or the output is a stream.
	FailedFile string `json:"failed_file,omitempty"`
	// GoesOn reports whether the same job goes on if this one has not ended.
	GoesOn bool `json:"-"`
}

// Failure counts the users that failed in one way. Immutable.
type Failure struct {
	Count   int    `json:"count"`
	Example string `json:"example"` // the first error
}

// exampleMost is how many bytes of an error are an example.
const exampleMost = 500

// fail counts a user that failed.
func (s *Summary) fail(class, text string) {
	s.Failed++
	if s.Errors == nil {
		s.Errors = make(map[string]Failure)
	}
	f := s.Errors[class]
	if f.Count++; f.Count == 1 {
		f.Example = strings.ToValidUTF8(text[:min(len(text), exampleMost)], "")
	}
	s.Errors[class] = f
}

// Add counts an answer: whether it is degraded, and by which nodes, and whether it is empty, below minimum or of a fallback.
func (s *Summary) Add(a *rankd.Answer) {
	if a.Len() == 0 {
		s.Empty++
	}
	if a.BelowMinimum() != nil {
		s.Below++
	}
	if a.Fallback() != nil {
		s.Fallback++
	}
	if !a.Degraded() {
		return
	}
	s.Degraded++
	if s.Lacks == nil {
		s.Lacks = make(map[string]int)
	}
	for _, node := range a.Completeness() {
		status := string(node.Status)
		if outOfTime(node.Err) {
			status = "timeout"
		}
		if node.Status != rankd.NodeOK {
			s.Lacks[a.Version().Plan+"/"+node.Node+" "+status]++
		}
	}
}

// Lacking says how many of the answers are degraded, empty, below minimum or of a fallback, "" if none is.
func (s *Summary) Lacking() string {
	var parts []string
	if s.Degraded > 0 {
		var lacks []string
		for _, what := range slices.Sorted(maps.Keys(s.Lacks)) {
			lacks = append(lacks, fmt.Sprintf("%s %d", what, s.Lacks[what]))
		}
		parts = append(parts, fmt.Sprintf("%d degraded (%s)", s.Degraded, strings.Join(lacks, ", ")))
	}
	if s.Empty > 0 {
		parts = append(parts, fmt.Sprintf("%d empty", s.Empty))
	}
	if s.Below > 0 {
		parts = append(parts, fmt.Sprintf("%d below minimum", s.Below))
	}
	if s.Fallback > 0 {
		parts = append(parts, fmt.Sprintf("%d of a fallback", s.Fallback))
	}
	if parts == nil {
		return ""
	}
	return fmt.Sprintf("of %d that were ranked: %s", s.Users, strings.Join(parts, ", "))
}

// outOfTime reports whether an error is a timeout, of a node, of a request, of Redis or of a service.
func outOfTime(err error) bool {
	return errors.Is(err, rankd.ErrTimeout) || errors.Is(err, rankd.ErrNodeTimeout) || errors.Is(err, resp.ErrTimeout) || errors.Is(err, remote.ErrTimeout)
}

// late reports whether a user ran out of time, or a node did.
func late(p *Entry) bool {
	return outOfTime(p.Err) || p.Answer != nil && p.Answer.Degraded() && slices.ContainsFunc(p.Answer.Completeness(), func(c rankd.NodeCompleteness) bool { return outOfTime(c.Err) })
}

// ClassOf returns the class of the error of a user that failed, as metrics have it, and its text.
func ClassOf(err error) (class, text string) {
	var failed *rankd.Error
	switch {
	case errors.As(err, &failed):
		return failed.Class.Label(), err.Error()
	case errors.Is(err, errDegraded):
		return "degraded", err.Error()
	}
	return outcome.BadRequest.Label(), err.Error()
}

// Bounds say how many in a hundred users may lack something before a job keeps its output to itself. Immutable.
type Bounds struct{ Failed, Degraded, Empty, BelowMinimum, Fallback int }

// DefaultBounds are those of lists in Redis, which plans read at once. Users without rows are ordinary.
var DefaultBounds = Bounds{Failed: 10, Degraded: 1, Empty: 100, BelowMinimum: 1, Fallback: 1}

// NoBounds let each output pass.
var NoBounds = Bounds{100, 100, 100, 100, 100}

// ErrTooMany says that the output does not have its name, or the pointer has not moved.
var ErrTooMany = errors.New("too many users")

// check returns an error, which matches ErrTooMany, if more users lack something than the bounds allow.
func (b Bounds) check(s *Summary) error {
	var found []string
	for _, c := range [...]struct {
		what    string
		n, most int
	}{{"failed", s.Failed, b.Failed}, {"degraded", s.Degraded, b.Degraded}, {"empty", s.Empty, b.Empty}, {"below_minimum", s.Below, b.BelowMinimum}, {"fallback", s.Fallback, b.Fallback}} {
		if c.n*100 > c.most*s.Users {
			found = append(found, fmt.Sprintf("%d of %d %s, and --max_%s is %d in a hundred", c.n, s.Users, c.what, c.what, c.most))
		}
	}
	if found == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrTooMany, strings.Join(found, "; "))
}
