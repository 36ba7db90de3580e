package check

import (
	"fmt"
	"strings"
)

// markdown describes the binding requirements and all rules, for docs/reference/checks.md.
func markdown() string {
	var b strings.Builder
	b.WriteString("\n| rule | number | rfc8166 | rfc5666 | linux | what |\n|---|---|---|---|---|---|\n")
	for i := range rules {
		r := &rules[i]
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %v | %v | %v | %s |\n", r.ID, r.ID, r.Number,
			r.Severity[RFC8166], r.Severity[RFC5666], r.Severity[Linux], r.Title)
	}
	b.WriteString("\n## Requirements of bindings\n\n")
	for i, x := range Bindings {
		fmt.Fprintf(&b, "**B%d: %s.** %s *%s.* Rules:", i+1, x.Title, x.Text, x.Source)
		sep := " "
		for j := range rules {
			for _, n := range rules[j].Bindings {
				if n == i+1 {
					fmt.Fprintf(&b, "%s[`%s`](#%s)", sep, rules[j].ID, rules[j].ID)
					sep = ", "
				}
			}
		}
		b.WriteString(".\n\n")
	}
	b.WriteString("## Each rule\n")
	for i := range rules {
		r := &rules[i]
		fmt.Fprintf(&b, "\n### %s\n\n%s, %s. %s\n\n", r.ID, r.Number, r.Title, r.Text)
		fmt.Fprintf(&b, "Source: %s. Needs: %s.", r.Source, strings.Join(r.Needs.List(), ", "))
		for j, n := range r.Bindings {
			if j == 0 {
				b.WriteString(" Binding:")
			}
			fmt.Fprintf(&b, " B%d", n)
			if j == len(r.Bindings)-1 {
				b.WriteString(".")
			}
		}
		if r.Known != "" {
			fmt.Fprintf(&b, " Known: %s.", r.Known)
		}
		b.WriteString("\n")
	}
	return b.String()
}
