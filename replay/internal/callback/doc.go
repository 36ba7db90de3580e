// Package callback answers what an NFSv4 server asks of its client: CB_NULL and
// CB_COMPOUND, over the connection that the client made (answer.go) or, for NFSv4.0,
// over one that the server makes (listen.go).
package callback
