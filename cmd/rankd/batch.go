package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rankd/rankd/batch"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/errtext"
)

const batchLong = `Rank many users, and write an answer a line, in their order.

Parts of the answers are written to a folder beside the output, and joined at the end. Killed at any point, the same
command goes on with the part that it was at: no user is lost, and none is there twice. Users that failed go to a file
that can be run again. stdout has a summary.`

const batchExamples = `  rankd batch --users users.txt --plan_name complex_dag --out answers.jsonl
  rankd batch --users users.csv --plan plans/home.plan.ts --redis 10.0.0.5:6379 --max_commands_per_second 50000 --out answers.jsonl
  rankd batch --users answers.failed.jsonl --plan_name complex_dag --out again.jsonl   # those that failed
  rankd batch --users users.txt --plan_name complex_dag --shard 3/8 --out parts/       # an eighth of them, in parts`

const batchUsageTemplate = `Usage:
  rankd batch [flags]

Examples:
{{.Example}}

Flags ("-" and "_" in a name are the same):
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}

Exit status:
  0  each user has an answer
  1  users failed, or the batch did not come to its end
  2  bad usage or a bad plan
`

// batchOptions are the flags of rankd batch. Immutable once checked.
type batchOptions struct {
	options // those that it shares with the root command

	users, form, out  string
	inFlight          int
	partUsers         int
	commandsPerSecond int
	shardText         string
	shard, shards     int
}

func (o *batchOptions) settings() []cmdline.Setting {
	return slices.Concat([]cmdline.Setting{
		{Name: "users", To: &o.users, Help: "rank the users in this `file`; - is stdin, which must come again for the batch to go on"},
		{Name: "users_form", To: &o.form, OneOf: []string{"", string(batch.Lines), string(batch.CSV), string(batch.JSONL)}, Shown: "by the file",
			Help: "`form` of the users: lines (an id each), csv (a head with user_id, and context in further columns) or jsonl (requests as on stdin)"},
		{Name: "out", To: &o.out, Help: "write the answers to this `file`, or with / at its end keep the parts in this folder"},
		{Name: "in_flight", To: &o.inFlight, Default: batch.DefaultInFlight, Least: 1, Most: 1 << 16, Help: "rank this `number` of users at the same time"},
		{Name: "part_users", To: &o.partUsers, Default: batch.DefaultPartUsers, Least: 1, Most: 1 << 30, Help: "write the answers of this `number` of users at once: a batch that was killed loses no more"},
		{Name: "max_commands_per_second", To: &o.commandsPerSecond, Most: 1 << 30,
			Help: "give Redis at most this `number` of commands a second, apart from those of users that are under way (0: no limit)"},
		{Name: "shard", To: &o.shardText, Default: "0/1", Help: "rank one `share` of the users, such as 3/8: the fourth of eight, by a hash of the user"},
	}, o.PlanSettings(), o.EngineSettings(), o.SchedulingSettings(), o.DeadlineSettings(), o.ResponseSettings())
}

// batchCommand returns "rankd batch".
func (p *program) batchCommand(ctx context.Context) *cobra.Command {
	o := batchOptions{options: options{tracing: true, EngineFlags: cmdline.EngineFlags{}}}
	cmd := &cobra.Command{
		Use: "batch", Short: "Rank many users, with checkpoints", Long: batchLong, Example: batchExamples,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.Flags()); err != nil {
				return err
			}
			return p.rankBatch(ctx, &o)
		},
	}
	cmd.SetUsageTemplate(batchUsageTemplate)
	f := cmd.Flags()
	f.SortFlags = false
	f.SetNormalizeFunc(cmdline.Normalize)
	cmdline.AddSettings(f, o.settings())
	return cmd
}

// check reports all that is wrong with the options at once, and completes them.
func (o *batchOptions) check(given *pflag.FlagSet) error {
	problems := []error{o.options.check(given), cmdline.CheckSettings(given, o.settings())}
	for flag, value := range map[string]string{"users": o.users, "out": o.out} {
		if value == "" {
			problems = append(problems, fmt.Errorf("rankd batch needs --%s", flag))
		}
	}
	if o.PlanFile == "" && o.Plan == "" && o.PlansDir == "" {
		problems = append(problems, errors.New("rankd batch needs a plan: --plan_name, --plan, or --plan_dir for users that name theirs"))
	}
	one, all, _ := strings.Cut(o.shardText, "/")
	var first, second error
	o.shard, first = strconv.Atoi(one)
	o.shards, second = strconv.Atoi(all)
	if errors.Join(first, second) != nil || o.shard < 0 || o.shard >= o.shards {
		problems = append(problems, fmt.Errorf("--shard is i/n, such as 0/8 to 7/8, not %s", errtext.Quote(o.shardText)))
	}
	return errors.Join(problems...)
}

// rankBatch ranks the users.
func (p *program) rankBatch(ctx context.Context, o *batchOptions) error {
	p.tune(o.CPUThreads)
	redis := new(cmdline.EmbeddedRedis)
	defer redis.Close()
	e, err := openEngine(&o.options, setting{stderr: p.stderr, plans: p.plans, redis: redis})
	if err != nil {
		return err
	}
	defer e.Close()
	in, size := p.stdin, int64(0)
	if o.users != "-" {
		file, err := os.Open(o.users)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			size = info.Size()
		}
	}
	form := batch.Form(o.form)
	if form == "" && filepath.Ext(o.users) == ".csv" {
		form = batch.CSV
	}
	users, err := batch.NewUsers(in, form, e.Registry())
	if err != nil {
		return &cmdline.RuntimeError{Err: err}
	}
	job := batch.Job{
		Engine: e, Users: users, Format: o.Format(), InFlight: o.inFlight, CommandsPerSecond: o.commandsPerSecond, Shard: o.shard, Shards: o.shards,
		Out: o.out, PartUsers: o.partUsers, Name: "users of " + o.users, Progress: newProgressLine(p.stderr, size).show,
	}
	sum, err := job.Run(ctx)
	text, _ := json.Marshal(sum)
	fmt.Fprintf(p.stdout, "%s\n", text)
	switch {
	case err != nil && ctx.Err() != nil:
		return &cmdline.RuntimeError{Err: errors.New("interrupted; the same command goes on")}
	case err != nil:
		return &cmdline.RuntimeError{Err: err}
	case sum.Failed > 0:
		fmt.Fprintf(p.stderr, "rankd: %d users failed; --users %s runs them again\n", sum.Failed, batch.FailedFile(o.out))
		return cmdline.ErrFailed
	}
	return nil
}

// progressEvery is how often progress is told where nobody looks all the time.
const progressEvery = time.Minute

// A progressLine tells how far a batch has come: on a terminal a line that changes, and otherwise a line a minute. One goroutine.
type progressLine struct {
	w        io.Writer
	size     int64 // bytes of users; 0: nobody knows
	terminal bool
	told     time.Time
}

func newProgressLine(w io.Writer, size int64) *progressLine {
	info, err := os.Stderr.Stat()
	return &progressLine{w: w, size: size, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0, told: time.Now()}
}

func (l *progressLine) show(s batch.Progress) {
	line := fmt.Sprintf("%d users, %d failed, %.0f a second", s.Users, s.Failed, s.PerSecond)
	if share := float64(s.Read) / float64(max(l.size, 1)); l.size > 0 && share > 0 && share < 1 {
		left := time.Duration(s.Seconds * (1 - share) / share * float64(time.Second)).Round(time.Second)
		line += fmt.Sprintf(", %.0f%%, %v left", 100*share, left)
	}
	switch {
	case l.terminal:
		fmt.Fprintf(l.w, "\r\x1b[K%s", line)
		if l.size > 0 && s.Read >= l.size {
			fmt.Fprintln(l.w)
		}
	case time.Since(l.told) >= progressEvery:
		l.told = time.Now()
		fmt.Fprintf(l.w, "rankd: %s\n", line)
	}
}
