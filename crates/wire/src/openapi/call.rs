//! One call of the document, written as a sentence.

use std::collections::BTreeMap;

use utoipa::openapi::path::{OperationBuilder, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaFormat, SchemaType, Type};
use utoipa::openapi::{
    ContentBuilder, HttpMethod, KnownFormat, Ref, RefOr, Required, ResponseBuilder,
};
use utoipa::{PartialSchema, ToSchema};

use super::ERROR;

/// Schemas by name, with those they refer to.
#[derive(Default)]
pub(super) struct Schemas(BTreeMap<String, RefOr<Schema>>);

impl Schemas {
    pub(super) fn add<T: ToSchema>(&mut self) -> Ref {
        let mut used = Vec::new();
        T::schemas(&mut used);
        self.0.extend(used);
        self.0.insert(T::name().into_owned(), T::schema());
        Ref::from_schema_name(T::name())
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(super) fn into_inner(self) -> BTreeMap<String, RefOr<Schema>> {
        self.0
    }
}

pub(super) struct Call {
    pub(super) method: HttpMethod,
    pub(super) path: &'static str,
    pub(super) operation: OperationBuilder,
    pub(super) schemas: Schemas,
}

impl Call {
    /// `id` is what a generated client calls it. Parameters in the path are found there.
    pub(super) fn new(
        method: HttpMethod,
        path: &'static str,
        id: &'static str,
        summary: &'static str,
    ) -> Self {
        let operation = OperationBuilder::new()
            .operation_id(Some(id))
            .summary(Some(summary))
            .response("default", Ref::from_response_name(ERROR));
        let call = Self { method, path, operation, schemas: Schemas::default() };
        placeholders(path).into_iter().fold(call, |call, name| {
            call.parameter(ParameterIn::Path, name, Required::True, String::schema(), "")
        })
    }

    pub(super) fn tag(mut self, tag: &'static str) -> Self {
        self.operation = self.operation.tag(tag);
        self
    }

    pub(super) fn required<T: PartialSchema>(
        self,
        name: &'static str,
        description: &'static str,
    ) -> Self {
        self.parameter(ParameterIn::Query, name, Required::True, T::schema(), description)
    }

    pub(super) fn query<T: PartialSchema>(
        self,
        name: &'static str,
        description: &'static str,
    ) -> Self {
        self.parameter(ParameterIn::Query, name, Required::False, T::schema(), description)
    }

    pub(super) fn header(self, name: &'static str, description: &'static str) -> Self {
        self.parameter(ParameterIn::Header, name, Required::False, String::schema(), description)
    }

    fn parameter(
        mut self,
        place: ParameterIn,
        name: &'static str,
        required: Required,
        schema: RefOr<Schema>,
        description: &'static str,
    ) -> Self {
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(place)
            .required(required)
            .schema(Some(schema))
            .description((!description.is_empty()).then_some(description));
        self.operation = self.operation.parameter(parameter);
        self
    }

    pub(super) fn takes<T: ToSchema>(mut self, required: Required) -> Self {
        let schema = self.schemas.add::<T>();
        self.body("application/json", schema, required)
    }

    pub(super) fn takes_bytes(self, media_type: &'static str) -> Self {
        self.body(media_type, bytes(), Required::True)
    }

    fn body(
        mut self,
        media_type: &'static str,
        schema: impl Into<RefOr<Schema>>,
        required: Required,
    ) -> Self {
        let body = RequestBodyBuilder::new()
            .required(Some(required))
            .content(media_type, ContentBuilder::new().schema(Some(schema)).build());
        self.operation = self.operation.request_body(Some(body.build()));
        self
    }

    pub(super) fn gives<T: ToSchema>(
        mut self,
        status: &'static str,
        description: &'static str,
    ) -> Self {
        let schema = self.schemas.add::<T>();
        self.answer(status, description, Some(("application/json", schema.into())))
    }

    pub(super) fn gives_bytes(
        self,
        status: &'static str,
        description: &'static str,
        media_type: &'static str,
    ) -> Self {
        self.answer(status, description, Some((media_type, bytes().into())))
    }

    pub(super) fn gives_nothing(self, status: &'static str, description: &'static str) -> Self {
        self.answer(status, description, None)
    }

    /// A WebSocket.
    pub(super) fn upgrades(self, description: &'static str) -> Self {
        self.answer("101", description, None)
    }

    fn answer(
        mut self,
        status: &'static str,
        description: &'static str,
        content: Option<(&'static str, RefOr<Schema>)>,
    ) -> Self {
        let mut response = ResponseBuilder::new().description(description);
        if let Some((media_type, schema)) = content {
            let content = ContentBuilder::new().schema(Some(schema)).build();
            response = response.content(media_type, content);
        }
        self.operation = self.operation.response(status, response);
        self
    }
}

fn bytes() -> Schema {
    ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::String))
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary)))
        .into()
}

fn placeholders(path: &'static str) -> Vec<&'static str> {
    path.split('/')
        .filter_map(|part| part.strip_prefix('{').and_then(|part| part.strip_suffix('}')))
        .collect()
}
