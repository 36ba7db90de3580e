// Package html makes a page for browsers of a report: one file that loads
// nothing, with its drawings in it as SVG. It can be read without scripts; a
// script sorts tables, zooms, and says what one points at.
package html

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"sync"
	"text/template/parse"

	"github.com/rpcrdma/toolkit/analyze/diagnosis"
	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/plot"
	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/internal/printable"
)

//go:embed style.css
var styleText string

//go:embed script.js
var scriptText string

//go:embed head.tmpl
var headText string

//go:embed page.tmpl
var pageText string

// policy allows the page its own style and its own script, known by their hashes, and nothing else: no
// request leaves the page, and code that got into it by an error of ours does not run.
var policy = "default-src 'none'; style-src '" + hash(styleText) + "'; script-src '" + hash(scriptText) + "'; base-uri 'none'; form-action 'none'"

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// The style and the script are written as they are, since the policy has their hashes. They are files of this
// package: nothing in them comes from a capture.
var functions = template.FuncMap{
	"policy": func() string { return policy },
	"line": func(v any) any {
		if s, ok := v.(string); ok {
			return printable.Line(s)
		}
		return v
	},
	"style":  func() template.HTML { return template.HTML("<style>" + styleText + "</style>") },    //nolint:gosec // own text
	"script": func() template.HTML { return template.HTML("<script>" + scriptText + "</script>") }, //nolint:gosec // own text
}

// parsed parses a page when it is needed: few commands write one.
func parsed(name, body string) func() *template.Template {
	return sync.OnceValue(func() *template.Template {
		t := template.Must(template.New(name).Funcs(functions).Parse(plot.Template + headText + sessionsText + body))
		for _, x := range t.Templates() {
			oneLine(x.Tree.Root)
		}
		return t
	})
}

// drawing is text of several lines. In any other text, a line feed comes from a capture or the name of a file.
type drawing string

// oneLine has all strings that a template shows pass through the function line, so that none of them is forgotten.
func oneLine(n parse.Node) {
	switch n := n.(type) {
	case *parse.ListNode:
		if n != nil {
			for _, x := range n.Nodes {
				oneLine(x)
			}
		}
	case *parse.ActionNode:
		if len(n.Pipe.Decl) == 0 {
			n.Pipe.Cmds = append(n.Pipe.Cmds, &parse.CommandNode{
				NodeType: parse.NodeCommand, Pos: n.Pos, Args: []parse.Node{parse.NewIdentifier("line").SetTree(nil).SetPos(n.Pos)},
			})
		}
	case *parse.IfNode:
		oneLine(n.List)
		oneLine(n.ElseList)
	case *parse.RangeNode:
		oneLine(n.List)
		oneLine(n.ElseList)
	case *parse.WithNode:
		oneLine(n.List)
		oneLine(n.ElseList)
	}
}

var page = parsed("page", pageText)

// Write writes the page, with a section on sessions and connections unless
// sessions is nil, and with what slows calls down unless why is nil. tool is the program that made it, with its version. Names of files and whatever else comes from the
// capture is hostile: html/template escapes it for the place where it stands, and
// characters that are not to be shown as they are become \xNN (package printable).
func Write(w io.Writer, rep *latency.Report, sessions *session.Report, why *diagnosis.Report, tool string) error {
	v := newView(rep)
	v.Sessions = newSessionsView(sessions)
	v.Why = newWhyView(why)
	v.Tool = tool
	return page().Execute(printable.TextWriter(w), v)
}
