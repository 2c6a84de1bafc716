package cli

import (
	"fmt"
	"slices"

	"github.com/rankd/rankd/bench/caller"
	"github.com/rankd/rankd/bench/internal/engines"
	"github.com/rankd/rankd/internal/cmdline"
)

// engineRow returns the row of a flag of rankd itself, whose value goes to a place of a benchmark.
func engineRow(name string, to any) cmdline.Setting {
	var rankd cmdline.EngineFlags
	for _, row := range slices.Concat(rankd.PlanSettings(), rankd.EngineSettings()) {
		if row.Name == name {
			row.To, row.Idle = to, nil
			return row
		}
	}
	panic(fmt.Sprintf("rankd has no flag --%s", name)) // a fault of the table, which each use of the command shows
}

// describe returns the names of scenarios, and a text with a line for each.
func describe[S any](long string, scenarios []S, of func(S) (name, doc string)) (names []string, text string) {
	for _, s := range scenarios {
		name, doc := of(s)
		names = append(names, name)
		long += fmt.Sprintf("\n  %-14s %s", name, doc)
	}
	return names, long
}

func isPeer(s engines.Spec) bool { return s.Kind == engines.Peer }

// when returns why if it is so, and otherwise nothing.
func when(so bool, why string) string {
	if so {
		return why
	}
	return ""
}

func frontsRow(to *[]string) cmdline.Setting {
	known := []string{caller.RESP, caller.HTTP}
	return cmdline.Setting{Name: "fronts", To: to, Default: known, OneOf: known, Help: "`fronts` to measure"}
}

func programRow(to *string) cmdline.Setting {
	return cmdline.Setting{Name: "program", To: to, Help: "the `program` whose command serve is measured (default: this program)"}
}

func roundsRow(to *int) cmdline.Setting {
	return cmdline.Setting{Name: "rounds", To: to, Default: 6, Least: 1, Most: 1000, Help: "`number` of rounds; fewer than six give no interval"}
}

func scenarioRow(to *[]string, known []string) cmdline.Setting {
	return cmdline.Setting{Name: "scenario", To: to, Default: known, OneOf: known, Help: "`scenarios` to run"}
}

func redisServerRow(to *string) cmdline.Setting {
	return cmdline.Setting{Name: "redis_server", To: to, Help: "the redis-server `program` to start (default: redis-server on the PATH)"}
}
