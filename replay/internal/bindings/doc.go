// Package bindings holds what the symbols of a plan stand for on the live server: file
// handles, state ids, client ids, sessions, cookies. There is one Clone for each copy
// of the plan. It learns values from replies (learn.go) and puts them into calls
// (values.go), rewrites what cannot be sent as captured (rewrite.go), and says which
// calls have nothing to do on this server (omit.go).
package bindings
