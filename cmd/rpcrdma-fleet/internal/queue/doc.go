// Package queue hands out units through NATS JetStream: the queue itself, the loop of a worker, and what is known
// of units in work and of workers. Results are not here; they are in the store, which alone says what is done.
//
// Three things live in NATS:
//
//   - the stream [Stream], a work queue: one message for each unit that somebody still has to decode, on a subject
//     of its own, so that a unit cannot be queued twice;
//   - the bucket [UnitBucket]: one [Record] for each unit, who took it and how often its worker crashed;
//   - the bucket [WorkerBucket]: one [Sign] of life for each worker, which expires.
//
// All three can be lost without losing a result: submitting the same job again queues what the store lacks.
// Delivery is at least once. What makes that exact is that the result of a unit has the same bytes whoever
// decodes it, and that a unit whose result is in the store is acknowledged without decoding it again.
package queue
