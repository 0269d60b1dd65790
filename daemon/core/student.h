/* Student's t for any number of degrees of freedom > 0. Relative error below 1e-10, also far out in the tails. */
#ifndef PROFD_CORE_STUDENT_H
#define PROFD_CORE_STUDENT_H

/* P(|T| ≥ |t|). */
double student_outside(double freedom, double t);
/* The t with P(|T| ≤ t) = confidence, in (0, 1). */
double student_quantile(double freedom, double confidence);

#endif
