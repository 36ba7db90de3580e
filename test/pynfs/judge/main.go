// Judge compares the output of pynfs with a table of expected outcomes.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// rule is a line of the table.
type rule struct {
	minors, codes, outcome, reason string
	line                           int
	met                            bool
}

// Outcomes of the table. "extra" is a test that is run by name and passes.
var outcomes = []string{"fail", "warn", "unsupported", "omit", "extra"}

func readTable(r io.Reader) (rules []*rule, err error) {
	s := bufio.NewScanner(r)
	for n := 1; s.Scan(); n++ {
		text := strings.TrimSpace(s.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		f := strings.Fields(text)
		if len(f) < 4 || !slices.Contains(outcomes, f[2]) || strings.Trim(f[0], "012") != "" {
			return nil, fmt.Errorf("line %d: want minor versions, codes, an outcome of %v, and a reason", n, outcomes)
		}
		if _, err := path.Match(f[1], ""); err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", n, f[1], err)
		}
		rules = append(rules, &rule{f[0], f[1], f[2], strings.Join(f[3:], " "), n, false})
	}
	return rules, s.Err()
}

func (r *rule) matches(minor, code string) bool {
	ok, _ := path.Match(r.codes, code)
	return ok && strings.Contains(r.minors, minor)
}

var (
	resultLine = regexp.MustCompile(`^(\w+)\s+st_\w+\.\w+\s*: (PASS|FAILURE|WARNING|UNSUPPORTED|OMIT|NOT RUN|RUNNING|WAITING TO RUN|DEPENDENCY FUNCTION)$`)
	askedLine  = regexp.MustCompile(`^Command line asked for (\d+) of (\d+) tests$`)
	codeLine   = regexp.MustCompile(`^(\w+) FLAGS: (.*)$`)
)

// words maps the outcomes of pynfs to those of the table.
var words = map[string]string{"PASS": "pass", "FAILURE": "fail", "WARNING": "warn", "UNSUPPORTED": "unsupported", "OMIT": "omit"}

// inAll reads the output of --showcodesflags: the tests of the suite "all".
func inAll(r io.Reader) (map[string]bool, error) {
	all := map[string]bool{}
	s := bufio.NewScanner(r)
	for s.Scan() {
		if m := codeLine.FindStringSubmatch(s.Text()); m != nil && slices.Contains(strings.Split(m[2], ", "), "all") {
			all[m[1]] = true
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no tests in the list of codes")
	}
	return all, s.Err()
}

// judge reads the output of pynfs and reports unexpected outcomes.
func judge(log io.Reader, minor string, rules []*rule, all map[string]bool) (counts map[string]int, wrong []string, err error) {
	counts = map[string]int{}
	seen := map[string]string{}
	asked := ""
	s := bufio.NewScanner(log)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		if m := resultLine.FindStringSubmatch(s.Text()); m != nil {
			got := words[m[2]]
			if got == "" {
				got = strings.ToLower(m[2])
			}
			seen[m[1]] = got
		} else if m := askedLine.FindStringSubmatch(s.Text()); m != nil {
			asked = m[1]
		}
	}
	if err := s.Err(); err != nil {
		return nil, nil, err
	}
	if asked == "" || len(seen) == 0 {
		return nil, nil, errors.New("pynfs did not come to its end")
	}
	for code := range all {
		if seen[code] == "" {
			seen[code] = "omit" // tests of other minor versions are not listed
		}
	}
	for code, got := range seen {
		want, named := "pass", false
		var by *rule
		for _, r := range rules {
			if r.matches(minor, code) {
				if by, want = r, r.outcome; want == "extra" {
					want, named = "pass", true
				}
				break
			}
		}
		if !all[code] && !named && got == "omit" {
			continue // it was not requested
		}
		counts[got]++
		if by != nil && got == want {
			by.met = true
		}
		if got != want {
			reason := ""
			if by != nil {
				reason = fmt.Sprintf(" (line %d: %s)", by.line, by.reason)
			}
			wrong = append(wrong, fmt.Sprintf("%s: %s, want %s%s", code, got, want, reason))
		}
	}
	for _, r := range rules {
		if strings.Contains(r.minors, minor) && !r.met {
			wrong = append(wrong, fmt.Sprintf("line %d of the table: no %s is so", r.line, r.codes))
		}
	}
	slices.Sort(wrong)
	return counts, wrong, nil
}

func run() error {
	table := flag.String("table", "", "table of expected outcomes")
	minor := flag.String("minor", "", "minor version")
	codes := flag.String("codes", "", "output of --showcodesflags")
	name := flag.String("name", "", "of the lane")
	extra := flag.Bool("extra", false, "print the tests to be asked for by name, as far as they are no patterns")
	flag.Parse()
	t, err := os.Open(*table)
	if err != nil {
		return err
	}
	defer t.Close()
	rules, err := readTable(t)
	if err != nil {
		return fmt.Errorf("%s: %w", *table, err)
	}
	if *extra {
		for _, r := range rules {
			if r.outcome == "extra" && strings.Contains(r.minors, *minor) {
				fmt.Println(r.codes)
			}
		}
		return nil
	}
	c, err := os.Open(*codes)
	if err != nil {
		return err
	}
	defer c.Close()
	all, err := inAll(c)
	if err != nil {
		return err
	}
	counts, wrong, err := judge(os.Stdin, *minor, rules, all)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d passed, %d failed, %d warned, %d unsupported, %d not run; %d not as expected\n",
		*name, counts["pass"], counts["fail"], counts["warn"], counts["unsupported"], counts["omit"], len(wrong))
	for _, w := range wrong {
		fmt.Printf("%s:   %s\n", *name, w)
	}
	if len(wrong) > 0 {
		os.Exit(1)
	}
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "judge:", err)
		os.Exit(1)
	}
}
