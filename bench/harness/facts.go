package harness

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/rankd/rankd/internal/version"
)

// Facts name the machine, the build and the command of a benchmark. Immutable once built.
type Facts struct {
	Command string    `json:"command"` // that made the report
	Time    time.Time `json:"time"`
	Version string    `json:"version"` // of rankd's module
	Commit  string    `json:"commit"`  // of rankd; "unknown" with the reason if the build does not say
	Go      string    `json:"go"`
	OS      string    `json:"os"` // with the kernel's version, where it is known
	CPU     string    `json:"cpu"`
	Cores   int       `json:"cores"`
	Redis   string    `json:"redis,omitempty"`
	// Embedded is true if Redis ran inside the process. The figures then describe it more
	// than the engines.
	Embedded bool `json:"redis_is_embedded"`
}

// ReadFacts reads the facts that the machine and the build know. The caller adds the rest.
func ReadFacts() Facts {
	build := version.Read()
	return Facts{
		Time: time.Now().UTC().Truncate(time.Second), Version: build.Module, Commit: build.Commit, Go: runtime.Version(),
		OS:  strings.TrimSpace(runtime.GOOS + "/" + runtime.GOARCH + " " + firstLine("/proc/sys/kernel/osrelease")),
		CPU: cpuModel(), Cores: runtime.NumCPU(),
	}
}

// String returns the machine and the versions as a line of text.
func (f Facts) String() string {
	redis := ""
	if f.Redis != "" {
		redis = f.Redis + ", "
	}
	return fmt.Sprintf("%s, %d cores, %s, %s, %srankd %s, commit %s", f.CPU, f.Cores, f.OS, f.Go, redis, f.Version, f.Commit)
}

func firstLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return string(line)
}

func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	return parseCPUModel(string(text))
}

func parseCPUModel(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
