// Package sandbox gives up the privileges that a program needed to open its inputs and no longer needs once
// it reads them. A program that captures from the network decodes what strangers send: an attacker who takes
// it over should find nothing to use.
//
// Two steps, in this order, each for all threads of the process and irrevocable:
//
//	identity, err := options.Identity(writes) // before privileges are used: a mistake shows at once
//	// … open what needs privilege …
//	err = box.Drop()     // user, groups, capabilities, no_new_privs
//	// … open what the user may open …
//	err = box.Confine(needs)     // files, network, system calls
//
// What each layer is, and what a kernel or a build without it lacks, is in docs/live.md.
package sandbox
