// Package verdict is the vocabulary of a comparison: how a reply compares with the
// captured one (Verdict), and why (Reason: a code with its arguments). It contains no
// sentences: package report turns a Reason into text.
package verdict
