package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rankd/rankd/bench/compare"
	"github.com/rankd/rankd/bench/engines"
)

// parseWants reads --want. The error reports all that is wrong: an aim for an engine or a load that is
// not measured could never be met.
func (o *compareOptions) parseWants() error {
	if len(o.specs) == 0 { // --engines is wrong
		return nil
	}
	var problems []error
	for _, text := range o.wantTexts {
		w, err := compare.ParseWant(text)
		if err == nil {
			err = o.checkWant(&w)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("--want %w", err))
			continue
		}
		o.wants = append(o.wants, w)
	}
	return errors.Join(problems...)
}

// checkWant replaces the engines of w by their full names.
func (o *compareOptions) checkWant(w *compare.Want) error {
	for _, name := range []*string{&w.Engine, &w.To} {
		if name == &w.To && *name == compare.Yardstick {
			if o.redisBenchmark == "" {
				return fmt.Errorf("names %s, which runs with --redis_benchmark only", compare.Yardstick)
			}
			continue
		}
		spec, err := engines.ParseSpec(*name)
		if err != nil {
			return err
		}
		if !slices.Contains(o.specs, spec) {
			return fmt.Errorf("names the engine %q; --engines has %s", *name, strings.Join(specNames(o.specs), ", "))
		}
		*name = spec.String()
	}
	for _, at := range w.At {
		one := compare.Want{At: []float64{at}}
		if !slices.ContainsFunc(o.points(), one.Holds) {
			return fmt.Errorf("names the load %g, which is not measured", at)
		}
	}
	return nil
}
