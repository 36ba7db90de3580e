// Judge compares reports of replays with a table of expected differences, and prints the result of each replay.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// rule is a line of the table: a difference that is known.
type rule struct {
	server, capture, call, reason, cause string // all but the cause are patterns
	line                                 int
}

// readTable reads the table: fields are separated by bars.
func readTable(r io.Reader) (rules []*rule, err error) {
	s := bufio.NewScanner(r)
	for n := 1; s.Scan(); n++ {
		text := strings.TrimSpace(s.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		f := strings.Split(text, "|")
		if len(f) != 5 {
			return nil, fmt.Errorf("line %d: want server, capture, call, reason and cause, with | between them", n)
		}
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		rules = append(rules, &rule{f[0], f[1], f[2], f[3], f[4], n})
	}
	return rules, s.Err()
}

// like reports whether a text matches a pattern in which * matches anything, including slashes.
func like(pattern, text string) bool {
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", "\x00"), strings.ReplaceAll(text, "/", "\x00"))
	return ok && err == nil
}

func (r *rule) matches(server, capture, call string, reasons []string) bool {
	return like(r.server, server) && like(r.capture, capture) && like(r.call, call) &&
		slices.ContainsFunc(reasons, func(x string) bool { return like(r.reason, x) })
}

// result is what the judge reads of a report.
type result struct {
	Stopped    string         `json:"stopped"`
	Verdicts   map[string]int `json:"verdicts"`
	Mismatches []struct {
		Op      int      `json:"op"`
		What    string   `json:"what"`
		Verdict string   `json:"verdict"`
		Reasons []string `json:"reasons"`
	} `json:"mismatches"`
	More     int `json:"more_mismatches"`
	ReadBack *struct {
		Wrong []struct {
			Path   string `json:"path"`
			Reason string `json:"reason"`
		} `json:"wrong"`
	} `json:"read_back"`
}

// judge prints the result of a replay, and returns the differences that are not in the table.
func judge(w io.Writer, server, capture string, r *result, rules []*rule) (wrong []string) {
	causes := map[string]int{}
	fault := func(format string, args ...any) {
		wrong = append(wrong, server+", "+capture+": "+fmt.Sprintf(format, args...))
	}
	if r.Stopped != "" {
		fault("stopped: %s", r.Stopped)
	}
	if r.More > 0 {
		fault("%d more differences are not in the report", r.More)
	}
	known := func(call string, reasons []string) bool {
		i := slices.IndexFunc(rules, func(x *rule) bool { return x.matches(server, capture, call, reasons) })
		if i < 0 {
			causes["?"]++
			return false
		}
		causes[rules[i].cause]++
		return true
	}
	if r.ReadBack != nil {
		for _, x := range r.ReadBack.Wrong {
			if !known("read back", []string{x.Reason}) {
				fault("%s, read back at the end: %s", x.Path, x.Reason)
			}
		}
	}
	for _, m := range r.Mismatches {
		if m.Verdict != "explained" && m.Verdict != "better" && !known(m.What, m.Reasons) {
			fault("op %d, %s: %s: %s", m.Op, m.What, m.Verdict, strings.Join(m.Reasons, "; "))
		}
	}
	var text []string
	for cause, n := range causes {
		text = append(text, fmt.Sprintf("%d: %s", n, cause))
	}
	slices.Sort(text)
	n := r.Verdicts
	_, _ = fmt.Fprintf(w, "| %s | %s | %d | %d | %d | %d | %d | %s |\n", server, capture, n["same"], n["equivalent"], n["omitted"], n["explained"]+n["better"],
		n["worse"]+n["different"]+n["not sent"]+n["lost"], strings.Join(text, "; "))
	return wrong
}

func run() error {
	table := flag.String("table", "", "table of known differences")
	flag.Parse()
	f, err := os.Open(*table)
	if err != nil {
		return err
	}
	defer f.Close()
	rules, err := readTable(f)
	if err != nil {
		return fmt.Errorf("%s: %w", *table, err)
	}
	if flag.NArg() == 0 {
		return errors.New("there are no reports")
	}
	fmt.Println("| server | capture | same | equivalent | omitted | explained | other | causes of the others |\n|-|-|-:|-:|-:|-:|-:|-|")
	var wrong []string
	for _, name := range flag.Args() {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var r result
		if err := json.Unmarshal(b, &r); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		server, capture, _ := strings.Cut(strings.TrimSuffix(filepath.Base(name), ".json"), ".")
		wrong = append(wrong, judge(os.Stdout, server, capture, &r, rules)...)
	}
	for _, x := range wrong {
		fmt.Println(x)
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%d differences are not expected", len(wrong))
	}
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "judge:", err)
		os.Exit(1)
	}
}
