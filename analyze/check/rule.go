package check

import (
	"fmt"
	"path"
	"strings"
)

// Severity is how serious a finding is.
type Severity uint8

// Severities. Off marks a rule that a profile does not check.
const (
	Off     Severity = iota
	Note             // worth knowing; conforming, or a known harmless deviation
	Warning          // against a recommendation, or against a rule without harm to this exchange
	Error            // against a requirement: the peer may refuse, misread or lose the message
)

var severityNames = [...]string{"off", "note", "warning", "error"}

func (s Severity) String() string { return severityNames[s] }

// ParseSeverity returns the severity with that name.
func ParseSeverity(name string) (Severity, bool) {
	for s := Note; s <= Error; s++ {
		if severityNames[s] == name {
			return s, true
		}
	}
	return Off, false
}

// Profile is the set of rules that a capture is checked against.
type Profile uint8

// Profiles.
const (
	RFC8166 Profile = iota // RFC 8166, 8167, 8267, 8797
	RFC5666                // RFC 5666, 5667: padding and the read-read model are allowed
	Linux                  // RFC 8166, but known deviations of Linux and others are notes
)

// Profiles are the names of the profiles.
var Profiles = [...]string{"rfc8166", "rfc5666", "linux"}

func (p Profile) String() string { return Profiles[p] }

// ParseProfile returns the profile with that name.
func ParseProfile(name string) (Profile, bool) {
	for i, n := range Profiles {
		if n == name {
			return Profile(i), true
		}
	}
	return 0, false
}

// Needs is what a rule cannot be judged without.
type Needs uint8

// What rules need.
const (
	NeedCall       Needs = 1 << iota // the call
	NeedReply                        // the reply
	NeedSetup                        // the connection's setup
	NeedOperations                   // RDMA operations without gaps in the capture
	NeedPackets                      // packets of the fabric
	NeedArguments                    // decodable arguments or results
	NeedBefore                       // earlier packets of the connection
)

var needNames = [...]string{"call", "reply", "setup", "operations", "packets", "body", "history"}

// List names what is needed.
func (n Needs) List() []string {
	var out []string
	for i, name := range needNames {
		if n&(1<<i) != 0 {
			out = append(out, name)
		}
	}
	return out
}

func (n Needs) String() string { return strings.Join(n.List(), " ") }

// Rule is one thing that is checked.
type Rule struct {
	ID     string // as users type it
	Number string // row of the founding documents that it comes from, and a counter
	Title  string
	Source string // document and section
	Text   string // what it requires, and why
	// Known names a recognised deviation of a real implementation.
	Known    string
	Severity [len(Profiles)]Severity
	Needs    Needs
	Bindings []int // requirements of upper-layer bindings that it covers; see Bindings

	id id
}

// Rules returns all rules, ordered by number.
func Rules() []*Rule {
	out := make([]*Rule, len(rules))
	for i := range rules {
		out[i] = &rules[i]
	}
	return out
}

// Lookup returns the rule with that ID or number, or nil.
func Lookup(name string) *Rule {
	for i := range rules {
		if rules[i].ID == name || strings.EqualFold(rules[i].Number, name) {
			return &rules[i]
		}
	}
	return nil
}

// Selection says which rules are checked.
type Selection [ruleCount]bool

// All selects all rules.
func All() (s Selection) {
	for i := range s {
		s[i] = true
	}
	return s
}

// Select reads a comma-separated list of rules. Each item is an ID, a number such as L9.1, a row such as L9
// that stands for all of its numbers, a binding requirement such as B4, or a pattern of one of these with *
// and ?. A leading minus removes rules; if the first item has one, all other rules are selected.
func Select(list string) (Selection, error) {
	var s Selection
	for i, item := range strings.Split(list, ",") {
		item = strings.TrimSpace(item)
		name, minus := strings.CutPrefix(item, "-")
		if i == 0 && minus {
			s = All()
		}
		if name == "" {
			return s, fmt.Errorf("an empty item in the list of rules %q", list)
		}
		found := false
		for r := range rules {
			ok, err := rules[r].matches(name)
			if err != nil {
				return s, fmt.Errorf("%q is not a pattern of rules: %w", name, err)
			}
			if ok {
				s[r], found = !minus, true
			}
		}
		if !found {
			return s, fmt.Errorf("no rule %q: --list-rules shows them", name)
		}
	}
	return s, nil
}

func (r *Rule) matches(pattern string) (bool, error) {
	row, _, _ := strings.Cut(r.Number, ".")
	names := []string{r.ID, r.Number, row}
	for _, b := range r.Bindings {
		names = append(names, fmt.Sprintf("B%d", b))
	}
	for i, n := range names {
		p := pattern
		if i > 0 {
			p, n = strings.ToUpper(p), strings.ToUpper(n)
		}
		ok, err := path.Match(p, n)
		if ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}
