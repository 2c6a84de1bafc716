package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rankd/rankd/bench/caller"
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

// addRows adds the flags of a benchmark, and returns what checks them.
func addRows(cmd *cobra.Command, table ...cmdline.Setting) (check func() error) {
	cmdline.AddSettings(cmd.Flags(), table)
	return func() error {
		return errors.Join(cmdline.CheckValues(cmd.Flags()), cmdline.CheckSettings(cmd.Flags(), table))
	}
}

func frontsRow(to *[]string) cmdline.Setting {
	known := []string{caller.RESP, caller.HTTP}
	return cmdline.Setting{Name: "fronts", To: to, Default: known, OneOf: known, Help: "`fronts` to measure"}
}

func programRow(to *string) cmdline.Setting {
	return cmdline.Setting{Name: "program", To: to, Help: "the `program` whose command serve is measured (default: this program)"}
}

func roundsRow(to *int, standard int) cmdline.Setting {
	return cmdline.Setting{Name: "rounds", To: to, Default: standard, Least: 1, Most: 1000, Help: "`number` of rounds; fewer than six give no interval"}
}

func scenarioRow(to *[]string, known []string) cmdline.Setting {
	return cmdline.Setting{Name: "scenario", To: to, Default: known, OneOf: known, Help: "`scenarios` to run"}
}

func redisServerRow(to *string) cmdline.Setting {
	return cmdline.Setting{Name: "redis_server", To: to, Help: "the redis-server `program` to start (default: redis-server on the PATH)"}
}

func jsonRow(to *bool, lines string) cmdline.Setting {
	return cmdline.Setting{Name: "json", To: to, Help: "print the figures as JSON" + lines}
}
