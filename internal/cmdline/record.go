package cmdline

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
	"unicode"

	"filippo.io/age"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/internal/recorder"
	"github.com/rankd/rankd/internal/version"
	"github.com/rankd/rankd/trace/record"
)

// recordFlags are the flags of records. Immutable once checked.
type recordFlags struct {
	dir      string
	megabyte int
	to       []string
	expires  time.Duration
	models   bool
}

// RecordSettings are the flags of records of requests.
func (e *EngineFlags) RecordSettings() []Setting {
	r := &e.record
	without := func() string { return when(r.dir == "", "without --record") }
	return []Setting{
		{Name: "record", To: &r.dir, See: "record.md", Help: "record requests of some users in files in this `folder`, so that rankd replay can run them again"},
		{Name: "record_users", To: &e.RecordUsers, Default: 0.1, Idle: without, Help: "record the requests of this `number` in a hundred users, above 0"},
		{Name: "record_mb", To: &r.megabyte, Default: 64, Least: 1, Most: 1 << 20, Idle: without, Help: "end a file of records once it has this `number` of megabytes"},
		{Name: "record_expire_h", To: Duration(&r.expires, time.Hour), Default: 24 * 30, Least: 1, Most: 24 * 3650, Idle: without, Help: "let nobody run records again after this `number` of hours"},
		{Name: "record_models", To: &r.models, Default: true, Idle: without, Help: "put the models into the files; otherwise rankd replay needs --model_dir"},
		{Name: "encrypt_to", To: &r.to, Idle: without, See: "record.md#who-may-read-it",
			Help: "encrypt records to these age `recipients`, such as age1…, with commas between them; needed outside of --env dev"},
	}
}

// checkRecord reports what is wrong with the flags, and completes them.
func (e *EngineFlags) checkRecord() error {
	if e.record.dir == "" {
		e.RecordUsers = 0
		return nil
	}
	var problems []error
	if !(e.RecordUsers > 0 && e.RecordUsers <= 100) {
		problems = append(problems, fmt.Errorf("--record_users is a number above 0, up to 100, not %v", e.RecordUsers))
	}
	if e.Env != "dev" && len(e.record.to) == 0 {
		problems = append(problems, fmt.Errorf("--record with --env %s needs --encrypt_to: records have users, keys and private columns", e.Env))
	}
	e.RecordNoModels = !e.record.models
	return errors.Join(problems...)
}

// OpenLogs gives the options the log of what is served, and records. The caller calls close once the engine is closed.
func (e *EngineFlags) OpenLogs(o *rankd.Options, stdout io.Writer) (close func() error, err error) {
	closeServed, err := e.openServed(o, stdout)
	if err != nil || e.record.dir == "" {
		return closeServed, err
	}
	files, err := record.NewFiles(e.record.dir, int64(e.record.megabyte)<<20, e.recordHeader)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--record: %w", err), closeServed())
	}
	o.Record = files
	return func() error { return errors.Join(closeServed(), files.Close()) }, nil
}

// RecordHeader says what this process would record with. It has nothing of the flags.
func RecordHeader() record.Header {
	return record.Header{
		Commit: version.Read().Commit, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Unicode: unicode.Version, Zones: zones(),
		Values: record.ValuesVersion,
	}
}

// recordHeader returns the header of a file of records.
func (e *EngineFlags) recordHeader() record.Header {
	h := RecordHeader()
	h.Sample, h.Salt, h.Written, h.Recipients = e.RecordUsers/100, recorder.Salt, time.Now(), e.record.to
	h.Expires = h.Written.Add(e.record.expires)
	return h
}

// RecordLoss says how many records are lost; empty: none, or nothing is recorded.
func RecordLoss(e *rankd.Engine) string {
	n := e.Records()
	if n.Dropped+n.Failed == 0 {
		return ""
	}
	return fmt.Sprintf("--record: %d requests are lost of %d: %d ended faster than they could be recorded, %d could not be recorded",
		n.Dropped+n.Failed, n.Written+n.Dropped+n.Failed, n.Dropped, n.Failed)
}

// zones returns which release of the time zone database this process has, "" if that is unknown: it may be the one that Go has built in.
func zones() string {
	text, err := os.ReadFile("/usr/share/zoneinfo/tzdata.zi")
	line, _, _ := strings.Cut(string(text), "\n")
	if release, ok := strings.CutPrefix(line, "# version "); ok && err == nil {
		return release
	}
	return ""
}

// RecordFiles are the files of records that a command reads, and the keys to them. One goroutine.
type RecordFiles struct {
	identities string
	Read       record.ReadOptions
}

// Setting returns the flag of the keys.
func (r *RecordFiles) Setting() Setting {
	return Setting{Name: "identity_file", To: &r.identities, Help: "decrypt records with the age identities in this `file`"}
}

// Open reads the keys, and returns the files of these names: of a folder those of records.
func (r *RecordFiles) Open(names []string) (files []string, err error) {
	if r.identities != "" {
		text, err := fileio.ReadPath(r.identities, 1<<20)
		if err == nil {
			r.Read.Identities, err = age.ParseIdentities(bytes.NewReader(text))
		}
		if err != nil {
			return nil, fmt.Errorf("--identity_file: %s: %w", errtext.Name(r.identities), err)
		}
	}
	for _, name := range names {
		all := []string{name}
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			if all, err = filepath.Glob(filepath.Join(name, "*"+record.Ending)); err != nil || len(all) == 0 {
				return nil, fmt.Errorf("%s: the folder has no file *%s", errtext.Name(name), record.Ending)
			}
		}
		files = append(files, all...)
	}
	return files, nil
}
