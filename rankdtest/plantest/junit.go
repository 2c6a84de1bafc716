package plantest

import (
	"encoding/xml"
	"strconv"
	"strings"
	"time"
)

// The documents of JUnit, as CI systems read them. Immutable.
type (
	junitReport struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Seconds  string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		File    string        `xml:"file,attr"`
		Line    int           `xml:"line,attr"`
		Seconds string        `xml:"time,attr"`
		Failure *junitFailure `xml:"failure"`
		Error   *junitFailure `xml:"error"` // why a file could not run to its end
		Log     string        `xml:"system-out,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit returns the report in the XML that CI systems read: a suite for each file.
func (r *Report) JUnit() []byte {
	var doc junitReport
	for i := range r.Files {
		f := &r.Files[i]
		s := junitSuite{Name: f.Path, Tests: len(f.Tests) + len(f.Errors), Errors: len(f.Errors), Seconds: seconds(f.Elapsed)}
		for j := range f.Errors {
			e := &f.Errors[j]
			s.Cases = append(s.Cases, junitCase{Name: "the file runs", Class: f.Path, File: e.File, Line: e.Line, Seconds: "0.000",
				Error: &junitFailure{Message: e.Message, Text: e.String()}})
		}
		for j := range f.Tests {
			t := &f.Tests[j]
			c := junitCase{Name: t.Name, Class: f.Path, File: f.Path, Line: t.Line, Seconds: seconds(t.Elapsed), Log: strings.Join(t.Log, "\n")}
			if t.Failure != nil {
				s.Failures++
				c.Failure = &junitFailure{Message: t.Failure.Message, Text: t.Failure.String()}
			}
			s.Cases = append(s.Cases, c)
		}
		doc.Suites = append(doc.Suites, s)
	}
	text, err := xml.MarshalIndent(doc, "", "  ")
	if err != nil {
		panic(err) // plain data
	}
	return append([]byte(xml.Header), append(text, '\n')...)
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }
